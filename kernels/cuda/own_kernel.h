// The project's own kernel of an operation that a library also offers.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/kernel.h"

namespace mpc::cuda {

/// The name of own kernels in choice tables.
inline constexpr char kOwnChoice[] = "own";

class OwnKernel : public Kernel {
 public:
  OwnKernel(std::unique_ptr<Kernel> kernel, std::string reason)
      : kernel_(std::move(kernel)), reason_(std::move(reason)) {}
  std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    return kernel_->Enqueue(operands, queue);
  }
  std::string choice() const override { return kOwnChoice; }
  /// Why the library did not take the operation; empty where the own kernel was asked for.
  const std::string& reason() const { return reason_; }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::string reason_;
};

}  // namespace mpc::cuda
