#include "tools/mpc-run/describe.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/support/byte_size.h"

namespace mpc::tools {
namespace {

std::string NamedSpecs(const runtime::Program& program, const std::vector<runtime::NamedValue>& values) {
  return absl::StrJoin(values, ", ", [&](std::string* out, const runtime::NamedValue& named) {
    absl::StrAppend(out, named.name, " ", program.values[named.value].spec.ToString());
  });
}

/// "41 conv2d, 2 cast": the most frequent first.
std::string KernelCounts(const runtime::Sequence& sequence) {
  std::map<std::string, int> counts;
  for (const runtime::Instruction& instruction : sequence.instructions) ++counts[instruction.kernel];
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return absl::StrJoin(sorted, ", ", [](std::string* out, const auto& kernel) {
    absl::StrAppend(out, kernel.second, " ", kernel.first);
  });
}

std::string DescribeProgram(const runtime::Program& program) {
  std::string text = absl::StrCat("program ", program.name, " for ", program.device,
                                  program.arch.empty() ? "" : " " + program.arch, "\n");
  absl::StrAppend(&text, "  inputs: ", NamedSpecs(program, program.inputs), "\n");
  absl::StrAppend(&text, "  outputs: ", NamedSpecs(program, program.outputs), "\n");
  for (std::size_t i = 0; i < program.sequences.size(); ++i) {
    const runtime::Sequence& sequence = program.sequences[i];
    absl::StrAppend(&text, "  ", i == 0 ? "" : absl::StrCat("sequence ", i, ", @", sequence.name, ": "),
                    sequence.instructions.size(), " instructions: ", KernelCounts(sequence), "\n");
  }
  absl::StrAppendFormat(&text, "  peak %.2f MiB: %.2f state, %.2f temporaries and inputs, %.2f constants\n",
                        MiB(program.planned_bytes()), MiB(program.state_bytes()), MiB(program.arena_bytes),
                        MiB(program.constant_bytes()));
  for (const runtime::FlatUpdate& update : program.flat_updates) {
    absl::StrAppend(&text, "  flat update: ", program.step().instructions[update.first].kernel, " of ",
                    update.offsets.size(), " parameters, ", update.elements, " elements\n");
  }
  if (!program.required_cpu_features.empty()) {
    absl::StrAppend(&text, "  processor features: ", absl::StrJoin(program.required_cpu_features, ", "), "\n");
  }
  if (program.allow_tf32) absl::StrAppend(&text, "  f32 products may be TF32\n");
  text += DescribeChoices(program, "  ");
  for (const runtime::CodeBlob& blob : program.code) {
    absl::StrAppend(&text, "  code ", blob.name, " (", blob.format, ", ", blob.bytes.size(),
                    " bytes): ", absl::StrJoin(blob.kernels, ", "), "\n");
  }
  return text;
}

std::string DescribeState(const runtime::Package& package) {
  std::map<std::string, std::string> begins;
  for (const runtime::InitialValue& initial : package.initial_values) {
    begins[initial.name] = initial.bytes.size() == initial.spec.bytes() ? "value" : "one value throughout";
  }
  for (const runtime::InitialDraw& draw : package.draws) {
    for (const runtime::NamedValue& output : draw.program.outputs) {
      begins[output.name] = absl::StrCat("drawn, seed ", draw.seed);
    }
  }
  const std::vector<runtime::StateBinding> state = package.State();
  std::string text = absl::StrCat("state (", state.size(), ")\n");
  for (const runtime::StateBinding& binding : state) {
    absl::StrAppend(&text, "  ", binding.name, ": ", std::string(RoleName(binding.role)), " ", binding.spec.ToString(),
                    binding.written ? ", written" : "", "; begins as ", begins[binding.name], "\n");
  }
  return text;
}

}  // namespace

std::string DescribeChoices(const runtime::Program& program, const std::string& indent) {
  std::string text;
  for (const auto& [key, value] : program.choices) absl::StrAppend(&text, indent, "choice ", key, ": ", value, "\n");
  return text;
}

std::string DescribePackage(const std::string& path, const runtime::Package& package) {
  std::string text = absl::StrCat(path, ", format version ", runtime::kProgramFileVersion, "\n");
  for (const auto& [key, value] : package.metadata) absl::StrAppend(&text, "  ", key, ": ", value, "\n");
  for (const runtime::Program& program : package.programs) text += DescribeProgram(program);
  return text + DescribeState(package);
}

}  // namespace mpc::tools
