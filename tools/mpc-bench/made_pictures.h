// Pictures to read, made up.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mpc::tools {

constexpr std::int64_t kMadePictureHeight = 375;
constexpr std::int64_t kMadePictureWidth = 500;

/// Writes `count` JPEG files into two class folders of `folder`, and returns the mean of their bytes. A picture is
/// smooth noise of several scales with grain, as a photograph has, and is a function of its number alone. Quality is 95
/// and chroma is halved along both axes. Errors: those of writing.
absl::StatusOr<double> WriteMadePictures(const std::string& folder, std::int64_t count);

}  // namespace mpc::tools
