// gather (rows of a table by index), gather_grad, scatter_add and one_hot. Indices are i32 or i64, a table of any type,
// everything else of any floating storage type. An index outside the table gives a row of NaN, or of zeros where there
// is no NaN, and adds nothing.
#include <algorithm>
#include <limits>

#include "kernels/cuda/gather_lists.h"
#include "kernels/cuda/integers.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/row_teams.h"
#include "kernels/cuda/storage.h"
#include "kernels/known_attributes.h"

namespace mpc::cuda {
namespace {

struct GatherOperands {
  Source table;
  IntegerSource indices;
  Sink y;
  std::int64_t rows;
  int bytes;  ///< bytes of an element where bits move, both types being one; 0 where values are rounded
};

/// Moves units of kWidth elements. Bits move as they are where both tensors have one type.
template <int kWidth>
__global__ void __launch_bounds__(kTeamThreads) GatherKernel(RowTeams teams, GatherOperands operands) {
  AwaitEarlierLaunches();
  teams.ForEachRow(teams.rows, [&](std::int64_t i, int lane) {
    const std::int64_t row = operands.indices.Load(i);
    const bool inside = row >= 0 && row < operands.rows;
    for (std::int64_t unit = lane; unit < teams.units; unit += teams.lanes) {
      const std::int64_t to = (i * teams.units + unit) * kWidth;
      const std::int64_t from = (row * teams.units + unit) * kWidth;
      if (inside && operands.bytes != 0) {
        CopyElements<kWidth>(operands.bytes, operands.table.data, from, operands.y.data, to);
        continue;
      }
      if (!IsFloating(operands.y.dtype)) {
        VisitWord(static_cast<std::size_t>(operands.bytes), [&](auto word) {
          for (int k = 0; k < kWidth; ++k) static_cast<decltype(word)*>(operands.y.data)[to + k] = 0;
        });
        continue;
      }
      float values[kWidth];
      MPC_UNROLL
      for (float& value : values) value = std::numeric_limits<float>::quiet_NaN();
      if (inside) LoadElements(operands.table, from, values);
      StoreElements(operands.y, to, values);
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGather(const KernelSpec& spec, const KernelContext&) {
  if (!CanMove(spec.inputs[0].dtype, spec.outputs[0].dtype)) return UnsupportedTypes(spec);
  const std::int64_t rows = spec.inputs[0].shape[0];
  const std::int64_t width = spec.inputs[0].num_elements() / std::max<std::int64_t>(1, rows);
  const bool vectors = width % kVector == 0;
  return MakeKernel([rows, vectors,
                     teams = RowTeams::For(spec.inputs[1].num_elements(), vectors ? width / kVector : width),
                     table = spec.inputs[0].dtype, index = spec.inputs[1].dtype,
                     y = spec.outputs[0].dtype](const KernelOperands& operands, LaunchQueue& queue) {
    const GatherOperands bound{{operands.inputs[0], table},
                               {operands.inputs[1], index},
                               {operands.outputs[0], y},
                               rows,
                               table == y ? static_cast<int>(ElementSize(y)) : 0};
    return launch(queue, vectors ? &GatherKernel<kVector> : &GatherKernel<1>, teams.Shape(), teams, bound);
  });
}

/// Sums of the rows of a list, in its order. Four rows are read at a time: a sum waits for memory, not for additions.
template <int kWidth, typename RowAt>
__device__ __forceinline__ void SumRows(const Source& from, std::int64_t count, std::int64_t width, std::int64_t column,
                                        const RowAt& row_at, float (&sum)[kWidth]) {
  constexpr int kAhead = 4;
  MPC_UNROLL
  for (float& value : sum) value = 0;
  std::int64_t k = 0;
  for (; k + kAhead <= count; k += kAhead) {
    float x[kAhead][kWidth];
    MPC_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) LoadElements(from, row_at(k + ahead) * width + column, x[ahead]);
    MPC_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      MPC_UNROLL
      for (int i = 0; i < kWidth; ++i) sum[i] += x[ahead][i];
    }
  }
  for (; k < count; ++k) {
    float x[kWidth];
    LoadElements(from, row_at(k) * width + column, x);
    MPC_UNROLL
    for (int i = 0; i < kWidth; ++i) sum[i] += x[i];
  }
}

struct GatherGradOperands {
  Source dy;
  Source first;  ///< what the sums of lists are added to; its data may be null
  Sink table;
  GatherLists lists;
  float* partials;  ///< [pieces, width]
};

/// Blocks of a multiprocessor. They are few, so that the rows that are read ahead stay in registers.
constexpr int kSumBlocks = 2;

/// The sums of the pieces of long lists.
template <int kWidth>
__global__ void __launch_bounds__(kTeamThreads, kSumBlocks)
    SumPiecesKernel(RowTeams teams, GatherGradOperands operands) {
  AwaitEarlierLaunches();
  const GatherLists& lists = operands.lists;
  const std::int64_t width = teams.units * kWidth;
  teams.ForEachRow(*lists.piece_count, [&](std::int64_t piece, int lane) {
    const unsigned row = lists.row_of_piece[piece];
    const unsigned begin = (static_cast<unsigned>(piece) - lists.first_piece[row]) * kPieceRows;
    const unsigned length = lists.counts[row];
    const unsigned* list = lists.order + (lists.ends[row] - length) + begin;
    const unsigned count = length - begin < kPieceRows ? length - begin : kPieceRows;
    for (std::int64_t unit = lane; unit < teams.units; unit += teams.lanes) {
      float sum[kWidth];
      SumRows(
          operands.dy, count, width, unit * kWidth, [&](std::int64_t k) { return std::int64_t{list[k]}; }, sum);
      StoreElements(Sink{operands.partials, DType::kF32}, piece * width + unit * kWidth, sum);
    }
  });
}

/// Every row of the gradient: the sum of its list, or of its pieces.
template <int kWidth>
__global__ void __launch_bounds__(kTeamThreads, kSumBlocks)
    SumListsKernel(RowTeams teams, GatherGradOperands operands) {
  AwaitEarlierLaunches();
  const GatherLists& lists = operands.lists;
  const std::int64_t width = teams.units * kWidth;
  teams.ForEachRow(teams.rows, [&](std::int64_t row, int lane) {
    const unsigned length = lists.counts[row];
    const bool pieces = length > kPieceRows;
    const std::int64_t begin = pieces ? lists.first_piece[row] : lists.ends[row] - length;
    const Source from = pieces ? Source{operands.partials, DType::kF32} : operands.dy;
    const auto row_at = [&](std::int64_t k) { return pieces ? begin + k : std::int64_t{lists.order[begin + k]}; };
    for (std::int64_t unit = lane; unit < teams.units; unit += teams.lanes) {
      float sum[kWidth];
      SumRows(from, pieces ? PiecesOf(length) : length, width, unit * kWidth, row_at, sum);
      if (operands.first.data != nullptr) {
        float x[kWidth];
        LoadElements(operands.first, row * width + unit * kWidth, x);
        MPC_UNROLL
        for (int i = 0; i < kWidth; ++i) sum[i] = x[i] + sum[i];
      }
      StoreElements(operands.table, row * width + unit * kWidth, sum);
    }
  });
}

/// The sums of the rows of operand `added`, by the indices of operand 1. Where operand 0 is another, its rows are
/// added.
absl::StatusOr<std::unique_ptr<Kernel>> CreateRowSums(const KernelSpec& spec, std::size_t added) {
  const std::int64_t rows = spec.outputs[0].shape[0];
  const std::int64_t width = spec.outputs[0].num_elements() / std::max<std::int64_t>(1, rows);
  const std::int64_t count = spec.inputs[1].num_elements();
  const absl::StatusOr<GatherListsPlan> plan = GatherListsPlan::For(rows, count);
  if (!plan.ok()) return plan.status();
  const bool vectors = width % kVector == 0;
  const std::int64_t units = vectors ? width / kVector : width;
  const auto run = [plan = *plan, vectors, added, rows = RowTeams::For(rows, units),
                    pieces = RowTeams::For(plan->most_pieces, units), first = spec.inputs[0].dtype,
                    dy = spec.inputs[added].dtype, index = spec.inputs[1].dtype,
                    table = spec.outputs[0].dtype](const KernelOperands& operands, LaunchQueue& queue) {
    const GatherLists lists = plan.Lists(operands.workspace);
    if (absl::Status status = plan.Enqueue({operands.inputs[1], index}, lists, queue); !status.ok()) return status;
    auto* partials = reinterpret_cast<float*>(static_cast<std::byte*>(operands.workspace) + plan.bytes());
    const GatherGradOperands bound{{operands.inputs[added], dy},
                                   {added == 0 ? nullptr : operands.inputs[0], first},
                                   {operands.outputs[0], table},
                                   lists,
                                   partials};
    const absl::Status status =
        launch(queue, vectors ? &SumPiecesKernel<kVector> : &SumPiecesKernel<1>, pieces.Shape(), pieces, bound);
    if (!status.ok()) return status;
    return launch(queue, vectors ? &SumListsKernel<kVector> : &SumListsKernel<1>, rows.Shape(), rows, bound);
  };
  return MakeKernel(run, plan->bytes() + static_cast<std::size_t>(plan->most_pieces * width) * sizeof(float));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGatherGrad(const KernelSpec& spec, const KernelContext&) {
  return CreateRowSums(spec, 0);
}
absl::StatusOr<std::unique_ptr<Kernel>> CreateScatterAdd(const KernelSpec& spec, const KernelContext&) {
  return CreateRowSums(spec, 2);
}

struct OneHotOperands {
  IntegerSource indices;
  Sink y;
  std::int64_t depth;
  float on, off;
};

__global__ void __launch_bounds__(kMapThreads) OneHotKernel(OneHotOperands operands, std::int64_t count) {
  AwaitEarlierLaunches();
  const auto value = [&](std::int64_t row, std::int64_t column) {
    return operands.indices.Load(row) == column ? operands.on : operands.off;
  };
  ForEachVector(
      count,
      [&](std::int64_t first) {
        std::int64_t row = first / operands.depth, column = first % operands.depth;
        float y[kVector];
        MPC_UNROLL
        for (float& element : y) {
          element = value(row, column);
          if (++column < operands.depth) continue;
          column = 0;
          ++row;
        }
        operands.y.StoreVector(first, y);
      },
      [&](std::int64_t i) { operands.y.Store(i, value(i / operands.depth, i % operands.depth)); });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateOneHot(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([depth = spec.outputs[0].shape.back(), on = spec.attributes.Get(attribute::kOn),
                     off = FloatAttribute(spec, "off"), count = spec.outputs[0].num_elements(),
                     index = spec.inputs[0].dtype,
                     y = spec.outputs[0].dtype](const KernelOperands& operands, LaunchQueue& queue) {
    const OneHotOperands bound{{operands.inputs[0], index}, {operands.outputs[0], y}, depth, on, off};
    return launch(queue, &OneHotKernel, MapShape(count), bound, count);
  });
}

}  // namespace

void RegisterGather(Registry& registry) {
  registry.Add("gather", CreateGather);
  registry.Add("gather_grad", CreateGatherGrad);
  registry.Add("scatter_add", CreateScatterAdd, {{0, 0}});
  registry.Add("one_hot", CreateOneHot);
}

}  // namespace mpc::cuda
