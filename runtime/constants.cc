#include "runtime/constants.h"

#include <algorithm>
#include <cstring>

namespace mpc::runtime {

void RepeatElement(const ConstantFill& fill, std::size_t bytes, std::byte* to) {
  if (bytes == 0) return;
  std::memcpy(to, fill.element.data(), fill.element.size());
  for (std::size_t done = fill.element.size(); done < bytes; done *= 2) {
    std::memcpy(to + done, to, std::min(done, bytes - done));
  }
}

void WriteConstants(const Program& program, std::byte* to) {
  if (!program.constants.empty()) std::memcpy(to, program.constants.data(), program.constants.size());
  std::size_t offset = program.constants.size();
  for (const ConstantFill& fill : program.fills) {
    RepeatElement(fill, fill.bytes, to + offset);
    offset += fill.bytes;
  }
}

}  // namespace mpc::runtime
