// Files of events as TensorBoard reads them. Not part of the public API.
//
// A file is a sequence of records (TFRecord): the length in 8 little-endian bytes, its masked CRC-32C, the data, their
// masked CRC-32C. The data are a message `Event` of tensorflow/core/util/event.proto in protobuf's wire format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mpc::internal {

/// CRC-32C (Castagnoli) of `data`.
std::uint32_t Crc32c(std::string_view data);

/// The CRC-32C as records hold it: rotated right by 15 bits, plus 0xa282ead8. So data that hold CRCs have sound ones.
std::uint32_t MaskedCrc32c(std::string_view data);

/// `data` with its length and checksums.
std::string EventRecord(std::string_view data);

/// The first event of a file, which says the version of its format. `wall_time` is in seconds since 1970.
std::string VersionEvent(double wall_time);

/// Scalars at step `step`, by their tags. Each is rounded to f32.
std::string ScalarsEvent(double wall_time, std::int64_t step,
                         const std::vector<std::pair<std::string, double>>& scalars);

}  // namespace mpc::internal
