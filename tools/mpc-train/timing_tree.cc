#include "tools/mpc-train/timing_tree.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc::tools {
namespace {

using compiler::CompileResult;
using compiler::PhaseTime;

/// "train_step 32x1x32x32": a Program is compiled for each batch shape.
std::string ProgramTitle(const runtime::Program& program) {
  std::string title = program.name;
  if (program.inputs.empty()) return title;
  const TensorSpec& spec = program.values[program.inputs[0].value].spec;
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
    absl::StrAppend(&title, axis == 0 ? " " : "x", spec.shape[axis]);
  }
  return title;
}

std::size_t NumChildren(const std::vector<PhaseTime>& phases, std::size_t parent) {
  std::size_t children = 0;
  for (std::size_t i = parent + 1; i < phases.size() && phases[i].depth > phases[parent].depth; ++i) {
    children += phases[i].depth == phases[parent].depth + 1;
  }
  return children;
}

/// "passes/mpc-amp": the names from the root down to each phase.
std::vector<std::string> PhasePaths(const std::vector<PhaseTime>& phases) {
  std::vector<std::string> paths;
  std::vector<std::string> above;
  for (const PhaseTime& phase : phases) {
    above.resize(static_cast<std::size_t>(phase.depth));
    paths.push_back(above.empty() ? phase.name : absl::StrCat(above.back(), "/", phase.name));
    above.push_back(paths.back());
  }
  return paths;
}

std::string Line(int depth, const std::string& name, double seconds, double total, std::size_t children) {
  std::string line = absl::StrFormat("%s[%s]: %.6g (%.2f%%)", std::string(4 * static_cast<std::size_t>(depth), ' '),
                                     name, seconds, 100 * seconds / std::max(total, 1e-12));
  if (children > 0) absl::StrAppend(&line, ", [", children, "]");
  return line + "\n";
}

/// `line` with what the phase of generating code made.
std::string WithCounts(std::string line, const compiler::CodeCounts& code) {
  line.pop_back();
  return absl::StrCat(line, ", ", code.regions, " regions, ", code.distinct, " kernels, ", code.from_cache,
                      " from the cache\n");
}

struct Sum {
  double seconds = 0;
  int count = 0;
};

std::vector<std::pair<std::string, Sum>> SumsByPhase(const std::vector<const CompileResult*>& programs) {
  std::vector<std::pair<std::string, Sum>> sums;
  std::map<std::string, std::size_t> positions;
  for (const CompileResult* program : programs) {
    const std::vector<std::string> paths = PhasePaths(program->phases);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const auto [position, is_new] = positions.emplace(paths[i], sums.size());
      if (is_new) sums.emplace_back(paths[i], Sum{});
      Sum& sum = sums[position->second].second;
      sum.seconds += program->phases[i].seconds;
      ++sum.count;
    }
  }
  return sums;
}

}  // namespace

std::vector<std::pair<std::string, double>> SecondsByPhase(const std::vector<const CompileResult*>& programs) {
  std::vector<std::pair<std::string, double>> seconds;
  for (const auto& [path, sum] : SumsByPhase(programs)) seconds.emplace_back(path, sum.seconds);
  return seconds;
}

double TotalSeconds(const CompileResult& program) {
  double total = 0;
  for (const PhaseTime& phase : program.phases) total += phase.depth == 0 ? phase.seconds : 0;
  return total;
}

double TotalSeconds(const std::vector<const CompileResult*>& programs) {
  double total = 0;
  for (const CompileResult* program : programs) total += TotalSeconds(*program);
  return total;
}

std::string FormatTimingTree(const std::vector<const CompileResult*>& programs) {
  const double total = TotalSeconds(programs);
  std::string text = absl::StrFormat("TotalTime = %.6g, [%d]\n", total, programs.size());
  for (const CompileResult* program : programs) {
    const std::vector<PhaseTime>& phases = program->phases;
    const auto top =
        std::count_if(phases.begin(), phases.end(), [](const PhaseTime& phase) { return phase.depth == 0; });
    text += Line(0, ProgramTitle(program->program), TotalSeconds(*program), total, static_cast<std::size_t>(top));
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const std::string line =
          Line(phases[i].depth + 1, phases[i].name, phases[i].seconds, total, NumChildren(phases, i));
      text += phases[i].name == "code generation" ? WithCounts(line, program->code) : line;
    }
  }
  text += "Sums\n";
  for (const auto& [path, sum] : SumsByPhase(programs)) {
    absl::StrAppendFormat(&text, "%6.2f%% : %12.6fs : %6d: %s\n", 100 * sum.seconds / std::max(total, 1e-12),
                          sum.seconds, sum.count, path);
  }
  return text;
}

}  // namespace mpc::tools
