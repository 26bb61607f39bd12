// mpc-opt's own command line, read and checked.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/report/range_table.h"
#include "llvm/ADT/StringRef.h"
#include "tools/mpc-opt/model_lock.h"
#include "tools/mpc-opt/model_source.h"
#include "tools/mpc-opt/what_if.h"

namespace mpc::opt {

/// What mpc-opt prints in place of the IR.
enum class Output {
  kIr,
  kReport,
  kReportJson,
  kDot,
  kExplanation,
  kDifference,
  kOperations,
  kLock,
  kRanges,
  kReplay,
  kPage
};

struct DriverOptions {
  bool has_model = false;
  ModelRequest model;
  bool has_level = false;  ///< --amp-level was given
  std::string stage;       ///< empty: not given
  Output output = Output::kIr;
  std::string function;               ///< --function; empty: the step of a model, or the first of a file
  std::string explain;                ///< --explain
  std::vector<std::string> levels;    ///< --diff, two of them
  LockRequest lock;                   ///< --lock, --check, --update
  compiler::RangeAssumptions ranges;  ///< --ranges: the inputs of --data-range, the first loss scale of a model
  bool derives_scale = false;         ///< --loss-scale=derived
  ReplayRequest replay;               ///< --replay, --what-if, --trace
};

/// Leaves mpc-opt's own options in the text of --help, with those of help and output. All others, which MLIR and LLVM
/// register, stand behind --help-hidden.
void HideForeignOptions();

/// Whether the command line holds an option of mpc-opt's own. Without one, mpc-opt is mlir-opt with the mpc dialect.
bool HasOwnOptions();

/// Errors: options that exclude each other, words that are not known, with what is accepted. `input` is mlir-opt's file
/// ("-": none given).
absl::StatusOr<DriverOptions> ReadOptions(llvm::StringRef input);

/// Errors: -o names a file, `output`, that another option reads or writes.
absl::Status CheckFiles(llvm::StringRef output);

}  // namespace mpc::opt
