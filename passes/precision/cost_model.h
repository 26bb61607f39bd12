// The seconds that operations and casts take on a device. They are the weights of level auto.
#pragma once

#include "mlir/IR/Operation.h"

namespace mpc {

/// A roofline of the forward pass; the backward pass repeats work and casts in about the same ratio. An operation takes
/// its overhead and the longer of moving its bytes and doing its matrix work. The defaults describe a device with fast
/// low matrix units; the front end replaces them by what it measured.
struct CostModel {
  double BytesPerSecond = 1e12;
  double LowFlops = 2e14;
  double F32Flops = 2.5e13;
  double SecondsPerOperation = 2e-6;

  /// Seconds of \p Op with every floating tensor stored in f32, or in a 16-bit type.
  double operationSeconds(mlir::Operation *Op, bool Low) const;

  /// The seconds that \p Op saves in a 16-bit type; negative where the device is slower in it.
  double secondsSavedByLow(mlir::Operation *Op) const {
    return operationSeconds(Op, /*Low=*/false) - operationSeconds(Op, /*Low=*/true);
  }

  /// Seconds of one cast of \p V between f32 and a 16-bit type.
  double castSeconds(mlir::Value V) const;

  /// Seconds to write the low copy of parameter \p V beside its update.
  double shadowSeconds(mlir::Value V) const;
};

} // namespace mpc
