// The seconds that operations and casts take on a device. They are the weights of level auto.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"

namespace mpc {

/// A roofline of the forward pass; the backward pass repeats work and casts in about the same ratio. An operation takes
/// its overhead and the longer of moving its bytes and doing its matrix work. The defaults describe a device with fast
/// low matrix units; the front end replaces them by what it measured.
struct CostModel {
  double bytesPerSecond = 1e12;
  double lowFlops = 2e14;
  double f32Flops = 2.5e13;
  double secondsPerOperation = 2e-6;

  /// Takes rates that were given; 0 keeps a default. Others that are not finite and positive are errors.
  llvm::Error give(double bytes, double low, double f32, double perOperation);

  /// Seconds of \p op with every floating tensor stored in f32, or in a 16-bit type.
  double operationSeconds(mlir::Operation *op, bool low) const;

  /// The seconds that \p op saves in a 16-bit type; negative where the device is slower in it.
  double secondsSavedByLow(mlir::Operation *op) const {
    return operationSeconds(op, /*low=*/false) - operationSeconds(op, /*low=*/true);
  }

  /// Seconds of one cast of \p v between f32 and a 16-bit type.
  double castSeconds(mlir::Value v) const;

  /// Seconds to write the low copy of parameter \p v beside its update.
  double lowCopySeconds(mlir::Value v) const;
};

} // namespace mpc
