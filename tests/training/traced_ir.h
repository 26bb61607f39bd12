// The IR of a Model's training step, line by line.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/training/training_support.h"

namespace mpc::testing {

/// The training step on `columns` after the passes up to `stage` ("amp", "grad", "final").
inline std::string IrAt(const Model& model, const std::vector<TensorSpec>& columns, const std::string& stage) {
  absl::StatusOr<compiler::Module> module = model.TraceTrainStep(columns);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return "";
  MPC_EXPECT_OK(compiler::RunPasses(*module, model.compile_options(/*training=*/true), stage, nullptr, nullptr));
  return module->Print();
}

inline std::vector<std::string> LinesWith(const std::string& ir, const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(ir);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(text) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

/// Whether f16 or bf16 occurs in the types of `text`.
inline bool IsLow(const std::string& text) {
  return text.find("xf16") != std::string::npos || text.find("xbf16") != std::string::npos ||
         text.find("<f16>") != std::string::npos || text.find("<bf16>") != std::string::npos;
}

}  // namespace mpc::testing
