// Lock files as text: what writes them and what reads them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/report/precision_lock.h"

namespace mpc::compiler {

/// The text of a lock file: a head of `key: value` lines with a checksum, then a table with a line for each operation.
/// Equal locks have equal texts, and it ends in a line break.
///
///   mpc precision lock 1
///   network: LeNet5
///   ...
///   checksum: 0a1b2c3d
///
///   Cell | operation | direction | count | types | bytes | casts | why
///   lenet5/conv1 | conv2d | forward | 1 | f16 -> f16 | 300 + 11456 a sample | - | level O2
///
/// Bytes are whole numbers. A bar, a backslash or a control character in a name or a reason is written as in C, in
/// octal digits.
std::string PrintPrecisionLock(const PrecisionLock &lock);

/// Reads such a text; lines may end in "\r\n". Errors: INVALID_ARGUMENT for a text that is no lock; UNIMPLEMENTED for
/// another version; DATA_LOSS for a damaged one. The last names the line, what it has and what is expected.
absl::StatusOr<PrecisionLock> ParsePrecisionLock(absl::string_view text);

/// "300 + 11456 a sample", "300", "11456 a sample", "0", or "not linear".
std::string PrintSampleBytes(const SampleBytes &bytes);

} // namespace mpc::compiler
