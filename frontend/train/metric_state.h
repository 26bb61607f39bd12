// What metrics have seen, as bytes that travel between processes. Not part of the public API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/train/metric.h"

namespace mpc::internal {

/// Writes the state of one metric. It begins with a mark, the version and the metric's Description, and ends with a
/// checksum. Numbers are little-endian and f64 keep their bits.
class MetricStateWriter {
 public:
  explicit MetricStateWriter(const Metric& metric) : MetricStateWriter(metric.Description()) {}
  explicit MetricStateWriter(std::string_view description);

  void AddInteger(std::int64_t number);
  void AddNumber(double number);
  void AddText(std::string_view text);
  void AddIntegers(const std::vector<std::int64_t>& numbers);
  void AddFloats(const std::vector<float>& numbers);
  /// The state; nothing may be added behind it.
  std::string Finish();

 private:
  void AddBytes(const void* bytes, std::size_t size);

  std::string bytes_;
};

/// Reads what a MetricStateWriter has written. An error stays: all that follows reads 0 or nothing, and Finish returns
/// the first one. Errors (INVALID_ARGUMENT) begin with the metric's Description and say what is wrong. There are bytes
/// of something else, another version, another metric, a damaged or truncated state, a count that is none.
class MetricStateReader {
 public:
  MetricStateReader(const Metric& metric, std::string_view bytes) : MetricStateReader(metric.Description(), bytes) {}
  MetricStateReader(std::string description, std::string_view bytes);

  double Number();
  /// A count: 0 to 2^53.
  std::int64_t Count();
  /// A count that was written as a number.
  double WholeNumber();
  std::string_view Text();
  std::vector<std::int64_t> Counts();
  std::vector<float> Floats();
  /// Notes that the state is not one of the metric: `what` is wrong with it.
  void Refuse(std::string_view what);
  /// The first error. There must be nothing left.
  absl::Status Finish();

 private:
  void CheckFrame(std::string_view bytes);
  /// Copies `size` bytes; zeros after an error.
  void Read(void* bytes, std::size_t size);
  /// The number of elements of a list, each of `element_bytes` bytes, all of which are there.
  std::size_t ListSize(std::size_t element_bytes);

  std::string description_;
  std::string_view left_;
  absl::Status status_;
};

}  // namespace mpc::internal
