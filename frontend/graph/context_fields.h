// The list of ContextOptions' fields: what flags, errors and the options of a compilation make of each.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/dialect/head_chunks.h"
#include "frontend/graph/context.h"
#include "runtime/launch_limits.h"

namespace mpc::compiler {
struct CompileOptions;
}  // namespace mpc::compiler

namespace mpc {

/// The Models that take the option of a compilation: all, or those on the context's device alone.
enum class ContextReach { kEveryModel, kModelsOfDevice };

/// The numbers that a field takes.
struct ContextRange {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const char* least_means = "";  ///< "automatic"
};

/// A field of ContextOptions. An empty text stands for what it has not.
struct ContextField {
  const char* name;         ///< the member: "allow_tf32"
  const char* placeholder;  ///< what stands for its flag's value: "true|false"; empty: tools have no such flag
  const char* only_on;      ///< the device that alone has it: "cuda"; empty: every device
  const char* option;       ///< the option of a compilation that takes its value: "plan.allow_tf32"
  ContextReach reach = ContextReach::kEveryModel;
  ContextRange range = {};
  const char* help = "";  ///< help of its flag; an option of a compilation has its own
};

/// Calls `visit(ContextField, member)` for each field of `given`, a ContextOptions. A test breaks where a member is
/// missing in this list.
template <typename Given, typename Visitor>
void VisitContext(Given& given, Visitor&& visit) {
  using enum ContextReach;
  using Field = ContextField;
  visit(Field{"mode", "", "", ""}, given.mode);
  visit(Field{"num_threads", "", "", "", kEveryModel, {.least_means = "automatic"}}, given.num_threads);
  visit(Field{"device", "cpu|cuda", "", "device"}, given.device);
  visit(Field{"arch", "sm_80|sm_90", "cuda", "arch", kModelsOfDevice}, given.arch);
  visit(Field{"fusion", "true|false", "", "fusion"}, given.fusion);
  visit(Field{"memory_budget", "BYTES", "", "memory_budget", kEveryModel, {.least_means = "none"}},
        given.memory_budget);
  visit(Field{"head_chunks", "N", "", "head_chunks", kEveryModel, {1, kMostHeadChunks, "the head stays whole"}},
        given.head_chunks);
  visit(Field{"pad_classes", "true|false", "cuda", "pad_classes"}, given.pad_classes);
  visit(Field{"graph", "on|off", "cuda", "", kModelsOfDevice, ContextRange(),
              "cuda: replays a step as one graph, or starts its kernels one by one; the same bits. Default on."},
        given.graph);
  visit(Field{"steps_per_launch",
              "N",
              "cuda",
              "",
              kModelsOfDevice,
              {1, runtime::kMostStepsPerLaunch},
              "cuda: steps that one graph holds; for networks whose steps are shorter than a launch. The same bits. "
              "Default 1."},
        given.steps_per_launch);
  visit(Field{"allow_tf32", "true|false", "cuda", "plan.allow_tf32", kModelsOfDevice}, given.allow_tf32);
  visit(Field{"allow_conv_statistics", "true|false", "cuda", "conv_statistics", kModelsOfDevice},
        given.allow_conv_statistics);
  visit(Field{"allow_winograd", "true|false", "cpu", "plan.allow_winograd", kModelsOfDevice}, given.allow_winograd);
  visit(Field{"tune", "true|false", "", "plan.tune", kModelsOfDevice}, given.tune);
  visit(Field{"choice_cache", "FILE", "", "plan.choice_cache", kModelsOfDevice}, given.choice_cache);
}

/// A field with its value.
struct ContextValue {
  ContextField field;
  std::string text;       ///< as its flag has it: "sm_90", "8", "on"; empty: it is left out
  bool is_given = false;  ///< it differs from the default
};

/// Every field of `options`, in the order of VisitContext.
std::vector<ContextValue> ContextValues(const ContextOptions& options);

/// What a message calls a field, with the text of its value or, where that is empty, without.
using ContextNamer = std::string (*)(const ContextField& field, std::string_view text);

/// The namer of programs: "graph = off", "graph".
std::string NameOfField(const ContextField& field, std::string_view text);

/// Makes the checks that SetContext makes before it looks for the device. Its errors call fields as `call` does.
absl::Status CheckContext(const ContextOptions& options, ContextNamer call = NameOfField);

/// Sets the options of a compilation that are fields of `context`. `of_device`: the Model runs on the context's device.
void CopyOptions(const ContextOptions& context, bool of_device, compiler::CompileOptions& options);

}  // namespace mpc
