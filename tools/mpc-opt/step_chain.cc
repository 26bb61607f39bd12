#include "tools/mpc-opt/step_chain.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace mpc::opt {
namespace {

using runtime::ValueId;

/// Which values of a Program were measured, and which of them each one is computed from.
class MeasuredValues {
 public:
  explicit MeasuredValues(const runtime::Program& program) : program_(program) {
    const std::vector<runtime::Instruction>& instructions = program.step().instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      for (const ValueId output : instructions[i].outputs) producers_.emplace(output, i);
    }
    for (const runtime::NamedValue& output : program.outputs) {
      if (!absl::EndsWith(output.name, "|exponents")) continue;
      const auto measures = producers_.find(output.value);
      const ValueId value = measures == producers_.end() ? runtime::kNoValue : instructions[measures->second].inputs[0];
      indices_.emplace(value, values_.size());
      values_.push_back(value);
    }
  }

  /// The measured values that number `index` is computed from, nearest ones only.
  std::set<std::size_t> OperandsOf(std::size_t index) const {
    std::set<std::size_t> found;
    std::set<ValueId> seen;
    if (index < values_.size()) Gather(values_[index], found, seen);
    return found;
  }

 private:
  void Gather(ValueId value, std::set<std::size_t>& found, std::set<ValueId>& seen) const {
    const auto producer = producers_.find(value);
    if (producer == producers_.end()) return;
    for (const ValueId operand : program_.step().instructions[producer->second].inputs) {
      const ValueId read = SourceOf(operand);
      if (read == runtime::kNoValue || !seen.insert(read).second) continue;
      if (const auto index = indices_.find(read); index != indices_.end()) {
        found.insert(index->second);
      } else {
        Gather(read, found, seen);
      }
    }
  }

  /// The parameter that a low copy follows; any other value itself.
  ValueId SourceOf(ValueId value) const {
    if (value == runtime::kNoValue) return value;
    const runtime::Value& read = program_.values[value];
    if (read.storage != runtime::Storage::kState) return value;
    for (const runtime::StateRefresh& refresh : program_.refreshes) {
      if (refresh.derived != read.index) continue;
      for (std::size_t i = 0; i < program_.values.size(); ++i) {
        const runtime::Value& source = program_.values[i];
        if (source.storage == runtime::Storage::kState && source.index == refresh.source) {
          return static_cast<ValueId>(i);
        }
      }
    }
    return value;
  }

  const runtime::Program& program_;
  std::map<ValueId, std::size_t> producers_;  ///< the instruction that writes a value
  std::vector<ValueId> values_;               ///< in the order of the measurements
  std::map<ValueId, std::size_t> indices_;    ///< the reverse
};

/// "2^-12 to 2^3" of the elements that are neither zero nor infinite.
std::string Exponents(const ValueStatistics& value) {
  int least = 255;
  int most = 0;
  for (int exponent = 1; exponent < 255; ++exponent) {
    if (value.exponents[static_cast<std::size_t>(exponent)] == 0) continue;
    least = std::min(least, exponent);
    most = exponent;
  }
  if (most == 0) return "-";
  return absl::StrFormat("2^%d to 2^%d", least - 127, most - 127);
}

}  // namespace

std::string DescribeChain(const runtime::Program& program, const std::vector<ValueStatistics>& values,
                          std::size_t last) {
  const MeasuredValues measured(program);
  std::set<std::size_t> chain = {last};
  std::set<std::size_t> beside;
  for (std::size_t at = last;;) {
    const std::set<std::size_t> operands = measured.OperandsOf(at);
    const auto largest = std::max_element(operands.begin(), operands.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(values[a].not_finite() > 0, values[a].largest) <
             std::pair(values[b].not_finite() > 0, values[b].largest);
    });
    beside.insert(operands.begin(), operands.end());
    if (largest == operands.end() || !chain.insert(*largest).second) break;
    at = *largest;
  }
  std::string text = absl::StrFormat("  %-18s %-12s %-20s %-12s %s\n", "exponents", "largest", "zeros", "not finite",
                                     "value (* the chain)");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!chain.contains(i) && !beside.contains(i)) continue;
    const ValueStatistics& value = values[i];
    absl::StrAppendFormat(&text, "%s %-18s %-12g %-20s %-12d %s\n", chain.contains(i) ? "*" : " ", Exponents(value),
                          value.largest, absl::StrFormat("%d of %d", value.zeros, value.count()), value.not_finite(),
                          value.Describe());
  }
  return text;
}

}  // namespace mpc::opt
