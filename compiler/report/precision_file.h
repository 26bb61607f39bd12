// A precision that was chosen, as a file to train with. Free of MLIR headers.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/options/precision_map.h"

namespace mpc::compiler {

/// Which slots of a network are low.
struct ChosenPrecision {
  std::string network; ///< type name of the network's Cell
  std::string low;     ///< "f16" or "bf16"
  PrecisionMap slots;  ///< each open slot: `low` or "f32"
};

/// The text of such a file. It is sorted and ends in a line break. The checksum is of all other lines.
///
///   mpc precision 1
///   network: LeNet5
///   low type: f16
///   checksum: 0a1b2c3d
///
///   f16 | lenet5/conv1#conv2d.0
std::string PrintPrecisionFile(const ChosenPrecision &chosen);

/// Reads such a text; lines may end in "\r\n". Errors: INVALID_ARGUMENT for a text that is no such file; UNIMPLEMENTED
/// for another version; DATA_LOSS for a damaged one.
absl::StatusOr<ChosenPrecision> ParsePrecisionFile(absl::string_view text);

/// Reads the file at \p path. Errors: those of ParsePrecisionFile and of reading, with the path.
absl::StatusOr<ChosenPrecision> ReadPrecisionFile(const std::string &path);

/// Writes it beside \p path, synced and renamed. Errors: what writing reports.
absl::Status WritePrecisionFile(const std::string &path, const ChosenPrecision &chosen);

} // namespace mpc::compiler
