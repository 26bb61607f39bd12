// A device "planted": the CPU, or a GPU, on which one result of a step is one unit in the last place larger.
#pragma once

#include <cstddef>
#include <string>

namespace mpc::tools {

/// Which result is changed, and where.
struct PlantedDifference {
  std::size_t instruction = 0;  ///< of the step
  std::size_t result = 0;
  std::size_t element = 0;  ///< of a floating type
};

/// Programs for the device "planted" have this difference from now on. Each may be observed. `device` runs them: they
/// are its Programs under another name.
void PlantDifference(const PlantedDifference& difference, const std::string& device = "cpu");

}  // namespace mpc::tools
