// lstm_cell and lstm_cell_grad: a thread takes eight neighbouring elements of the cell state where rows allow, with
// their four gates, else one.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/runs.h"
#include "kernels/scalar/lstm.h"

namespace mpc::cuda {
namespace {

constexpr int kThreads = 256;

struct CellOperands {
  Source gates, cell_state;
  Sink hidden, new_cell_state, activations;
};

template <int kRun>
__global__ void __launch_bounds__(kThreads)
    LstmCellKernel(CellOperands operands, std::int64_t rows, std::int64_t width) {
  AwaitEarlierLaunches();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads * kRun;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kRun;
  for (std::int64_t state = first; state < rows * width; state += step) {
    const std::int64_t gate = state / width * 4 * width + state % width;
    float i[kRun], f[kRun], g[kRun], o[kRun], c[kRun], hidden[kRun];
    LoadRun<kRun>(operands.gates, gate, i);
    LoadRun<kRun>(operands.gates, gate + width, f);
    LoadRun<kRun>(operands.gates, gate + 2 * width, g);
    LoadRun<kRun>(operands.gates, gate + 3 * width, o);
    LoadRun<kRun>(operands.cell_state, state, c);
    for (int k = 0; k < kRun; ++k) {
      const auto element = scalar::LstmElement::Create(i[k], f[k], g[k], o[k], c[k]);
      i[k] = element.input;
      f[k] = element.forget;
      g[k] = element.candidate;
      o[k] = element.output;
      c[k] = element.cell;
      hidden[k] = element.hidden;
    }
    StoreRun<kRun>(operands.hidden, state, hidden);
    StoreRun<kRun>(operands.new_cell_state, state, c);
    StoreRun<kRun>(operands.activations, gate, i);
    StoreRun<kRun>(operands.activations, gate + width, f);
    StoreRun<kRun>(operands.activations, gate + 2 * width, g);
    StoreRun<kRun>(operands.activations, gate + 3 * width, o);
  }
}

struct CellGradOperands {
  Source dhidden, dnew_cell_state, activations, cell_state, new_cell_state;
  Sink dgates, dcell_state;
};

template <int kRun>
__global__ void __launch_bounds__(kThreads)
    LstmCellGradKernel(CellGradOperands operands, std::int64_t rows, std::int64_t width) {
  AwaitEarlierLaunches();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads * kRun;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kRun;
  for (std::int64_t state = first; state < rows * width; state += step) {
    const std::int64_t gate = state / width * 4 * width + state % width;
    float dhidden[kRun], dnext[kRun], i[kRun], f[kRun], g[kRun], o[kRun], c[kRun], next[kRun];
    LoadRun<kRun>(operands.dhidden, state, dhidden);
    LoadRun<kRun>(operands.dnew_cell_state, state, dnext);
    LoadRun<kRun>(operands.activations, gate, i);
    LoadRun<kRun>(operands.activations, gate + width, f);
    LoadRun<kRun>(operands.activations, gate + 2 * width, g);
    LoadRun<kRun>(operands.activations, gate + 3 * width, o);
    LoadRun<kRun>(operands.cell_state, state, c);
    LoadRun<kRun>(operands.new_cell_state, state, next);
    for (int k = 0; k < kRun; ++k) {
      const auto element = scalar::LstmElementGrad::Create(dhidden[k], dnext[k], i[k], f[k], g[k], o[k], c[k], next[k]);
      i[k] = element.input;
      f[k] = element.forget;
      g[k] = element.candidate;
      o[k] = element.output;
      c[k] = element.cell;
    }
    StoreRun<kRun>(operands.dgates, gate, i);
    StoreRun<kRun>(operands.dgates, gate + width, f);
    StoreRun<kRun>(operands.dgates, gate + 2 * width, g);
    StoreRun<kRun>(operands.dgates, gate + 3 * width, o);
    StoreRun<kRun>(operands.dcell_state, state, c);
  }
}

template <typename Operands>
absl::Status LaunchCells(LaunchQueue& queue, void (*wide)(Operands, std::int64_t, std::int64_t),
                         void (*narrow)(Operands, std::int64_t, std::int64_t), const Operands& operands,
                         std::int64_t rows, std::int64_t width) {
  const bool vectors = width % kVector == 0;
  LaunchShape shape;
  shape.threads = kThreads;
  shape.blocks_x = BlocksFor(rows * width, kThreads * (vectors ? kVector : 1));
  return launch(queue, vectors ? wide : narrow, shape, operands, rows, width);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLstmCell(const KernelSpec& spec, const KernelContext&) {
  CellOperands types{};
  types.gates.dtype = spec.inputs[0].dtype;
  types.cell_state.dtype = spec.inputs[1].dtype;
  types.hidden.dtype = spec.outputs[0].dtype;
  types.new_cell_state.dtype = spec.outputs[1].dtype;
  types.activations.dtype = spec.outputs[2].dtype;
  return MakeKernel([types, rows = spec.inputs[1].shape[0], width = spec.inputs[1].shape[1]](
                        const KernelOperands& operands, LaunchQueue& queue) {
    CellOperands bound = types;
    bound.gates.data = operands.inputs[0];
    bound.cell_state.data = operands.inputs[1];
    bound.hidden.data = operands.outputs[0];
    bound.new_cell_state.data = operands.outputs[1];
    bound.activations.data = operands.outputs[2];
    return LaunchCells(queue, &LstmCellKernel<kVector>, &LstmCellKernel<1>, bound, rows, width);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLstmCellGrad(const KernelSpec& spec, const KernelContext&) {
  CellGradOperands types{};
  types.dhidden.dtype = spec.inputs[0].dtype;
  types.dnew_cell_state.dtype = spec.inputs[1].dtype;
  types.activations.dtype = spec.inputs[2].dtype;
  types.cell_state.dtype = spec.inputs[3].dtype;
  types.new_cell_state.dtype = spec.inputs[4].dtype;
  types.dgates.dtype = spec.outputs[0].dtype;
  types.dcell_state.dtype = spec.outputs[1].dtype;
  return MakeKernel([types, rows = spec.inputs[3].shape[0], width = spec.inputs[3].shape[1]](
                        const KernelOperands& operands, LaunchQueue& queue) {
    CellGradOperands bound = types;
    bound.dhidden.data = operands.inputs[0];
    bound.dnew_cell_state.data = operands.inputs[1];
    bound.activations.data = operands.inputs[2];
    bound.cell_state.data = operands.inputs[3];
    bound.new_cell_state.data = operands.inputs[4];
    bound.dgates.data = operands.outputs[0];
    bound.dcell_state.data = operands.outputs[1];
    return LaunchCells(queue, &LstmCellGradKernel<kVector>, &LstmCellGradKernel<1>, bound, rows, width);
  });
}

}  // namespace

void RegisterRecurrent(Registry& registry) {
  registry.Add("lstm_cell", CreateLstmCell);
  registry.Add("lstm_cell_grad", CreateLstmCellGrad);
}

}  // namespace mpc::cuda
