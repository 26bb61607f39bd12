// Owners of file descriptors.
#pragma once

#include <unistd.h>

#include <utility>

namespace mpc::runtime {

/// Closes the file descriptor when it leaves scope.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Close();
      value_ = std::exchange(other.value_, -1);
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Close(); }

  int get() const { return value_; }
  bool open() const { return value_ >= 0; }
  void Close() {
    if (open()) ::close(std::exchange(value_, -1));
  }

 private:
  int value_ = -1;
};

}  // namespace mpc::runtime
