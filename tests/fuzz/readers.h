// What the fuzzers feed: the readers of files that mpc did not write itself.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace mpc::fuzz {

/// Each gives `input` to a reader. A refusal must be INVALID_ARGUMENT and name its source; what is accepted must be
/// whole: all of it can be read, and what is written again reads as the same. Anything else ends the process.
void ReadSafetensors(absl::Span<const std::uint8_t> input);
void ReadNpy(absl::Span<const std::uint8_t> input);
/// An .mpcx file. Its tables are also read without their checksum, which would stop nearly every change.
void ReadProgram(absl::Span<const std::uint8_t> input);
/// Two bytes with the number of bytes of the labels' file, that file, the images' file.
void ReadIdx(absl::Span<const std::uint8_t> input);
/// Rows of digits as text, gzip-compressed or plain.
void ReadGzipRows(absl::Span<const std::uint8_t> input);

}  // namespace mpc::fuzz
