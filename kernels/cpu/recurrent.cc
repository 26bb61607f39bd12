// lstm_cell and lstm_cell_grad: rows of four gates, in blocks of columns. Gates, hidden states and their gradients have
// any floating storage type. Cell states and activations are f32.
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/scalar/lstm.h"

namespace mpc::cpu {
namespace {

// Calls body(state offset, offset of the input gate, size) for blocks of columns of each row; the other gates lie
// `width` apart.
template <typename Body>
void ForEachGateBlock(std::int64_t rows, std::int64_t width, const Body& body) {
  ParallelFor(rows, rows * width * 16, [&](std::int64_t row) {
    for (std::int64_t column = 0; column < width; column += kBlock) {
      body(row * width + column, 4 * row * width + column, std::min(kBlock, width - column));
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLstmCell(const KernelSpec& spec) {
  const auto run = [rows = spec.inputs[1].shape[0], width = spec.inputs[1].shape[1], gates_type = spec.inputs[0].dtype,
                    hidden_type = spec.outputs[0].dtype,
                    used =
                        std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)}](const KernelOperands& operands) {
    const Source gates{gates_type, operands.inputs[0]};
    const auto* cell_state = static_cast<const float*>(operands.inputs[1]);
    ForEachGateBlock(rows, width, [&](std::int64_t state, std::int64_t gate, std::int64_t size) {
      BlockBuffer buffers[4], new_state, hidden;
      const float* const i = gates.Load(gate, size, buffers[0].values);
      const float* const f = gates.Load(gate + width, size, buffers[1].values);
      const float* const g = gates.Load(gate + 2 * width, size, buffers[2].values);
      const float* const o = gates.Load(gate + 3 * width, size, buffers[3].values);
      BlockBuffer activated[4];
      const float* const c = cell_state + state;
#pragma omp simd
      for (std::int64_t k = 0; k < size; ++k) {
        const auto element = scalar::LstmElement::Create(i[k], f[k], g[k], o[k], c[k]);
        activated[0].values[k] = element.input;
        activated[1].values[k] = element.forget;
        activated[2].values[k] = element.candidate;
        activated[3].values[k] = element.output;
        new_state.values[k] = element.cell;
        hidden.values[k] = element.hidden;
      }
      if (used[0]) StoreFloats(hidden_type, hidden.values, operands.outputs[0], state, size);
      if (used[1]) std::copy_n(new_state.values, size, static_cast<float*>(operands.outputs[1]) + state);
      if (!used[2]) return;
      for (std::int64_t part = 0; part < 4; ++part) {
        std::copy_n(activated[part].values, size, static_cast<float*>(operands.outputs[2]) + gate + part * width);
      }
    });
  };
  return MakeKernel(run);
}

// The operands are dhidden, dnew_cell_state, activations, cell_state and new_cell_state.
absl::StatusOr<std::unique_ptr<Kernel>> CreateLstmCellGrad(const KernelSpec& spec) {
  const auto run = [rows = spec.inputs[3].shape[0], width = spec.inputs[3].shape[1],
                    dhidden_type = spec.inputs[0].dtype, dgates_type = spec.outputs[0].dtype,
                    used = std::array<bool, 2>{spec.uses(0), spec.uses(1)}](const KernelOperands& operands) {
    const Source dhidden_source{dhidden_type, operands.inputs[0]};
    const auto at = [&](std::size_t operand, std::int64_t offset) {
      return static_cast<const float*>(operands.inputs[operand]) + offset;
    };
    ForEachGateBlock(rows, width, [&](std::int64_t state, std::int64_t gate, std::int64_t size) {
      BlockBuffer dhidden_buffer, dstate, dgates[4];
      const float* const dhidden = dhidden_source.Load(state, size, dhidden_buffer.values);
      const float* const dnext = at(1, state);
      const float* const i = at(2, gate);
      const float* const f = at(2, gate + width);
      const float* const g = at(2, gate + 2 * width);
      const float* const o = at(2, gate + 3 * width);
      const float* const c = at(3, state);
      const float* const next = at(4, state);
#pragma omp simd
      for (std::int64_t k = 0; k < size; ++k) {
        const auto element =
            scalar::LstmElementGrad::Create(dhidden[k], dnext[k], i[k], f[k], g[k], o[k], c[k], next[k]);
        dgates[0].values[k] = element.input;
        dgates[1].values[k] = element.forget;
        dgates[2].values[k] = element.candidate;
        dgates[3].values[k] = element.output;
        dstate.values[k] = element.cell;
      }
      if (used[0]) {
        for (std::int64_t part = 0; part < 4; ++part) {
          StoreFloats(dgates_type, dgates[part].values, operands.outputs[0], gate + part * width, size);
        }
      }
      if (used[1]) std::copy_n(dstate.values, size, static_cast<float*>(operands.outputs[1]) + state);
    });
  };
  return MakeKernel(run);
}

}  // namespace

void RegisterRecurrent(Registry& registry) {
  registry.Add("lstm_cell", CreateLstmCell);
  registry.Add("lstm_cell_grad", CreateLstmCellGrad);
}

}  // namespace mpc::cpu
