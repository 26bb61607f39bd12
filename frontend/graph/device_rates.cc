#include "frontend/graph/device_rates.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "frontend/graph/compiled_step.h"
#include "frontend/graph/ops.h"
#include "runtime/executable.h"

namespace mpc::amp {
namespace {

using compiler::DeviceRates;

struct RateField {
  const char* name;
  double DeviceRates::*field;
};
constexpr std::array<RateField, 4> kFields = {{{"rate.bytes_per_second", &DeviceRates::bytes_per_second},
                                               {"rate.low_flops", &DeviceRates::low_flops},
                                               {"rate.f32_flops", &DeviceRates::f32_flops},
                                               {"rate.seconds_per_operation", &DeviceRates::seconds_per_operation}}};

/// What a measurement runs: `extent` squared elements, or a matrix product of them.
struct Workload {
  bool matrix = false;
  std::int64_t extent = 0;
  DType dtype = DType::kF32;
};

/// Seconds of the fastest of a few runs of `length` dependent operations.
absl::StatusOr<double> SecondsOfChain(const std::string& device, const Workload& work, int length) {
  const Tensor input = Tensor::Full({work.extent, work.extent}, 1.0 / static_cast<double>(work.extent), work.dtype);
  mpc::internal::StepOptions options;
  options.name = "measure";
  mpc::internal::UseDevice(device, options);
  const mpc::internal::TensorFunction chain = [&](const std::vector<Tensor>& inputs) {
    Tensor value = inputs.at(0);
    for (int i = 0; i < length; ++i) value = work.matrix ? matmul(value, inputs.at(0)) : value * 0.999;
    return std::vector<Tensor>{value};
  };
  absl::StatusOr<std::unique_ptr<mpc::internal::CompiledStep>> step =
      mpc::internal::CompileStep(nullptr, chain, {input.spec()}, options);
  if (!step.ok()) return step.status();
  double best = std::numeric_limits<double>::infinity();
  // The first run also warms caches and threads up.
  for (int run = 0; run < 4; ++run) {
    const auto start = std::chrono::steady_clock::now();
    if (absl::Status status = (*step)->Run({input}); !status.ok()) return status;
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// Seconds of one operation, without what a run costs by itself.
absl::StatusOr<double> SecondsOfOperation(const std::string& device, const Workload& work, int length) {
  absl::StatusOr<double> one = SecondsOfChain(device, work, 1);
  if (!one.ok()) return one.status();
  absl::StatusOr<double> many = SecondsOfChain(device, work, 1 + length);
  if (!many.ok()) return many.status();
  // A clock that ticks coarsely may show no difference.
  return std::max(*many - *one, 1e-9 * length) / length;
}

absl::StatusOr<DeviceRates> Measure(const std::string& device, DType low) {
  const bool is_cpu = device == "cpu";
  const std::int64_t matrix = is_cpu ? 512 : 4096;
  const std::int64_t stream = is_cpu ? 1024 : 8192;
  const double flops = 2.0 * static_cast<double>(matrix) * static_cast<double>(matrix) * static_cast<double>(matrix);
  const double bytes = 2.0 * 4.0 * static_cast<double>(stream) * static_cast<double>(stream);
  DeviceRates rates;
  absl::StatusOr<double> seconds = SecondsOfOperation(device, {false, 4, DType::kF32}, 64);
  if (!seconds.ok()) return seconds.status();
  rates.seconds_per_operation = *seconds;
  seconds = SecondsOfOperation(device, {false, stream, DType::kF32}, 8);
  if (!seconds.ok()) return seconds.status();
  rates.bytes_per_second = bytes / *seconds;
  seconds = SecondsOfOperation(device, {true, matrix, DType::kF32}, 4);
  if (!seconds.ok()) return seconds.status();
  rates.f32_flops = flops / *seconds;
  seconds = SecondsOfOperation(device, {true, matrix, low}, 4);
  if (!seconds.ok()) return seconds.status();
  rates.low_flops = flops / *seconds;
  return rates;
}

}  // namespace

DType NativeLowType(std::string_view device) {
  const absl::StatusOr<const runtime::Device*> found = runtime::GetDevice(device);
  return found.ok() ? (*found)->native_low_type() : DType::kBF16;
}

absl::StatusOr<DeviceRates> MeasureDeviceRates(const std::string& device, DType low) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, DType>, DeviceRates> known;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = known.find({device, low}); found != known.end()) return found->second;
  absl::StatusOr<DeviceRates> rates = Measure(device, low);
  if (rates.ok()) known[{device, low}] = *rates;
  return rates;
}

std::vector<std::pair<std::string, std::string>> RateChoices(const DeviceRates& rates) {
  std::vector<std::pair<std::string, std::string>> choices;
  for (const RateField& entry : kFields) choices.emplace_back(entry.name, absl::StrCat(rates.*entry.field));
  return choices;
}

std::optional<DeviceRates> RatesFromChoices(const std::map<std::string, std::string>& choices) {
  DeviceRates rates;
  for (const RateField& entry : kFields) {
    const auto found = choices.find(entry.name);
    double rate = 0;
    if (found == choices.end() || !absl::SimpleAtod(found->second, &rate)) return std::nullopt;
    rates.*entry.field = rate;
  }
  return rates;
}

}  // namespace mpc::amp
