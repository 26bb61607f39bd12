// top_k, sort, which is top_k of all elements, and their gradient, for any floating storage type.
#include <algorithm>

#include "kernels/axis_lines.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/scalar/sort_key.h"

namespace mpc::cpu {
namespace {

struct TopK {
  AxisLines lines, results;
  bool descending;
  Source x;
  Sink values;
  std::int32_t* indices;
  bool uses_values, uses_indices;

  /// Orders one line in `keys`, which has room for it.
  void Line(std::int64_t line, std::uint64_t* keys) const {
    for (std::int64_t i = 0; i < lines.extent; ++i) {
      keys[i] = scalar::SortKey(x.ElementAt(lines.Offset(line, i)), i, descending);
    }
    if (results.extent == lines.extent) {
      std::sort(keys, keys + lines.extent);
    } else {
      std::partial_sort(keys, keys + results.extent, keys + lines.extent);
    }
    for (std::int64_t i = 0; i < results.extent; ++i) {
      const std::int64_t at = results.Offset(line, i);
      const std::int32_t index = scalar::IndexOfKey(keys[i]);
      if (uses_values) values.Set(at, x.ElementAt(lines.Offset(line, index)));
      if (uses_indices) indices[at] = index;
    }
  }
};

// Lines are shared out over at most this many tasks, each of which has room for one line.
constexpr std::int64_t kMaxTasks = 64;

absl::StatusOr<std::unique_ptr<Kernel>> CreateOrder(const KernelSpec& spec, std::int64_t count, bool descending) {
  const AxisLines lines = AxisLines::Of(spec.attributes, spec.inputs[0].shape);
  const std::int64_t tasks = std::min(kMaxTasks, lines.count());
  const std::size_t line_bytes = CacheLines(static_cast<std::size_t>(lines.extent) * sizeof(std::uint64_t));
  const auto run = [lines, count, descending, tasks, line_bytes, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                    uses_values = spec.uses(0), uses_indices = spec.uses(1)](const KernelOperands& operands) {
    AxisLines results = lines;
    results.extent = count;
    const TopK top_k{lines,
                     results,
                     descending,
                     {in, operands.inputs[0]},
                     {out, operands.outputs[0]},
                     static_cast<std::int32_t*>(operands.outputs[1]),
                     uses_values,
                     uses_indices};
    ParallelFor(tasks, lines.count() * lines.extent * 16, [&](std::int64_t task) {
      auto* keys = reinterpret_cast<std::uint64_t*>(static_cast<unsigned char*>(operands.workspace) +
                                                    static_cast<std::size_t>(task) * line_bytes);
      for (std::int64_t line = task; line < lines.count(); line += tasks) top_k.Line(line, keys);
    });
  };
  return MakeKernel(run, static_cast<std::size_t>(tasks) * line_bytes);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSort(const KernelSpec& spec) {
  return CreateOrder(spec, AxisLines::Of(spec.attributes, spec.inputs[0].shape).extent,
                     spec.attributes.GetBool("descending"));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateTopK(const KernelSpec& spec) {
  return CreateOrder(spec, spec.attributes.GetInt("k"), !spec.attributes.GetBool("smallest"));
}

// The operands are dy and indices. A task writes one line.
absl::StatusOr<std::unique_ptr<Kernel>> CreateTopKGrad(const KernelSpec& spec) {
  return MakeKernel([from = AxisLines::Of(spec.attributes, spec.inputs[0].shape),
                     to = AxisLines::Of(spec.attributes, spec.outputs[0].shape), in = spec.inputs[0].dtype,
                     out = spec.outputs[0].dtype](const KernelOperands& operands) {
    const Source dy{in, operands.inputs[0]};
    const auto* indices = static_cast<const std::int32_t*>(operands.inputs[1]);
    const Sink dx{out, operands.outputs[0]};
    ParallelFor(from.count(), to.count() * to.extent, [&](std::int64_t line) {
      for (std::int64_t i = 0; i < to.extent; ++i) dx.Set(to.Offset(line, i), 0.0f);
      for (std::int64_t i = 0; i < from.extent; ++i) {
        const std::int64_t at = from.Offset(line, i);
        if (indices[at] >= 0 && indices[at] < to.extent) dx.Set(to.Offset(line, indices[at]), dy.ElementAt(at));
      }
    });
  });
}

}  // namespace

void RegisterTopK(Registry& registry) {
  registry.Add("sort", CreateSort);
  registry.Add("top_k", CreateTopK);
  registry.Add("top_k_grad", CreateTopKGrad);
}

}  // namespace mpc::cpu
