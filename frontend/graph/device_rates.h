// How fast a device is. Level auto weighs the cost of casts against these rates. Not part of the public API.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/compiler.h"
#include "kernels/dtype.h"

namespace mpc::amp {

/// The low type that `device` computes in natively, as runtime::Device says; bf16 where there is no such device here.
DType NativeLowType(std::string_view device);

/// Rates of `device` with the low type `low`. Measured by running small Programs (well under a second) the first time
/// in this process, then remembered. Errors: what compiling or loading such a Program reports.
absl::StatusOr<compiler::DeviceRates> MeasureDeviceRates(const std::string& device, DType low);

/// The rates as entries of a Program's choice table: "rate.low_flops" -> "1.5e+11". A Program of a resumed run takes
/// the rates of the table it resumes from, so that it makes the same choices.
std::vector<std::pair<std::string, std::string>> RateChoices(const compiler::DeviceRates& rates);

/// The rates in a choice table; nullopt unless it holds all of them.
std::optional<compiler::DeviceRates> RatesFromChoices(const std::map<std::string, std::string>& choices);

}  // namespace mpc::amp
