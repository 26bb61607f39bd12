#include "frontend/train/remarks.h"

#include <iostream>

namespace mpc::internal {

void Remarks::Say(const std::string& line) const {
  if (speaks_) std::cerr << line << "\n";
}

void Remarks::SayOnce(const std::string& topic, const std::string& line) {
  if (said_.insert(topic).second) Say(line);
}

}  // namespace mpc::internal
