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
/// A capsule of a step. It is also read without its checksums, which would stop nearly every change.
void ReadCapsule(absl::Span<const std::uint8_t> input);
/// Two bytes with the number of bytes of the labels' file, that file, the images' file.
void ReadIdx(absl::Span<const std::uint8_t> input);
/// Rows of digits as text, gzip-compressed or plain.
void ReadGzipRows(absl::Span<const std::uint8_t> input);
/// Pictures, for each codec. Those of PNG are also read with the checksums that their chunks should have.
void ReadJpeg(absl::Span<const std::uint8_t> input);
void ReadPng(absl::Span<const std::uint8_t> input);
void ReadWebp(absl::Span<const std::uint8_t> input);
/// EXIF data, which begin at their TIFF header. No data are refused.
void ReadExif(absl::Span<const std::uint8_t> input);
/// A file of comma-separated values: with its header as numbers, and as a column of text and one of numbers.
void ReadCsv(absl::Span<const std::uint8_t> input);
/// An .npz archive, with and without the checksums of stored members.
void ReadNpz(absl::Span<const std::uint8_t> input);
/// A stream of messages of the store that brings processes together. The values of its messages, and the whole input,
/// are also read as what ranks tell each other of themselves.
void ReadStore(absl::Span<const std::uint8_t> input);

}  // namespace mpc::fuzz
