// How automatic mixed precision treats an operation.
#pragma once

namespace mpc {

enum class AmpClass {
  Allow,  ///< gains from low precision: matrix work
  Deny,   ///< computes in f32, reads and writes f32
  Infer,  ///< safe in low precision if its inputs are
  Clear,  ///< moves or compares values
  Norm,   ///< normalisation: arithmetic and statistics f32, x and y may be stored low
  Loss,   ///< a loss: f32 at every level
  Exempt, ///< casts, constants, gradients and the operations of a training step: never assigned
};

/// "allow", "deny", ... as `#mpc.precision` and the reports print it.
inline const char *ampClassName(AmpClass ampClass) {
  switch (ampClass) {
  case AmpClass::Allow:
    return "allow";
  case AmpClass::Deny:
    return "deny";
  case AmpClass::Infer:
    return "infer";
  case AmpClass::Clear:
    return "clear";
  case AmpClass::Norm:
    return "norm";
  case AmpClass::Loss:
    return "loss";
  case AmpClass::Exempt:
    return "exempt";
  }
  return "unknown";
}

} // namespace mpc
