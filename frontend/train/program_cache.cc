#include "frontend/train/program_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/graph/step_key.h"

namespace mpc::internal {

std::string ProgramCache::KeyOf(nn::Cell* root, const std::vector<Tensor>& inputs, const StepOptions& options,
                                const PrecisionDecision& decision) {
  return absl::StrCat(StepKey(root, inputs, options), "|", decision.version());
}

CompiledStep& ProgramCache::Keep(const std::string& asked, const std::string& traced,
                                 std::unique_ptr<CompiledStep> program) {
  std::unique_ptr<CompiledStep> earlier;
  CompiledStep& kept = programs_.Keep(asked, traced, std::move(program), &earlier);
  if (earlier != nullptr) GiveUp(std::move(earlier));
  compiled_.push_back(&kept.compiled());
  return kept;
}

CompiledStep& ProgramCache::KeepMeasuring(const std::string& key, std::unique_ptr<CompiledStep> program) {
  return measuring_.Keep(key, key, std::move(program));
}

void ProgramCache::ForgetReplaced() {
  for (std::unique_ptr<CompiledStep>& program : programs_.TakeReplaced()) GiveUp(std::move(program));
  measuring_.TakeReplaced();
}

void ProgramCache::GiveUp(std::unique_ptr<CompiledStep> program) {
  std::erase(compiled_, &program->compiled());
  if (runs_ > 0) given_up_.push_back(std::move(program));
}

std::size_t ProgramCache::peak_bytes() const {
  std::size_t peak = 0;
  for (const compiler::CompileResult* result : compiled_) peak = std::max(peak, result->program.planned_bytes());
  return peak;
}

}  // namespace mpc::internal
