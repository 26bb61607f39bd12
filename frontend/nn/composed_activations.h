// Activation layers made of functions of frontend/graph/activation_ops.h, which state errors and AMP classes of their
// parts. Names and defaults are MindSpore's.
#pragma once

#include <cstdint>

#include "frontend/graph/activation_ops.h"
#include "frontend/graph/cell.h"

namespace mpc::nn {

/// x itself, for a place that takes a Cell.
class Identity : public Cell {
 public:
  MPC_CELL(Identity)
  Tensor Construct(const Tensor& x) { return x; }
};

/// a * sigmoid(b) for the halves a and b of x along `axis`. AMP classes and errors: those of glu.
class GLU : public Cell {
 public:
  MPC_CELL(GLU)
  explicit GLU(std::int64_t axis = -1) : axis_(axis) {}
  Tensor Construct(const Tensor& x) { return glu(x, axis_); }

 private:
  std::int64_t axis_;
};

/// Self-normalising elu of fixed scale and alpha. AMP classes: those of selu.
class SeLU : public Cell {
 public:
  MPC_CELL(SeLU)
  Tensor Construct(const Tensor& x) { return selu(x); }
};

/// PyTorch's name.
using SELU = SeLU;

/// x where x > 0, else alpha * (exp(x / alpha) - 1). AMP classes and errors: those of celu.
class CELU : public Cell {
 public:
  MPC_CELL(CELU)
  explicit CELU(double alpha = 1.0) : alpha_(alpha) {}
  Tensor Construct(const Tensor& x) { return celu(x, alpha_); }

 private:
  double alpha_;
};

/// x limited to [minimum, maximum]. AMP classes and errors: those of hardtanh.
class Hardtanh : public Cell {
 public:
  MPC_CELL(Hardtanh)
  explicit Hardtanh(double minimum = -1.0, double maximum = 1.0) : minimum_(minimum), maximum_(maximum) {}
  Tensor Construct(const Tensor& x) { return hardtanh(x, minimum_, maximum_); }

 private:
  double minimum_;
  double maximum_;
};

/// log(sigmoid(x)). AMP classes: those of logsigmoid.
class LogSigmoid : public Cell {
 public:
  MPC_CELL(LogSigmoid)
  Tensor Construct(const Tensor& x) { return logsigmoid(x); }
};

/// x / (1 + |x|). AMP classes: those of softsign.
class Softsign : public Cell {
 public:
  MPC_CELL(Softsign)
  Tensor Construct(const Tensor& x) { return softsign(x); }
};

/// 0 where |x| <= lambd, else x. AMP classes and errors: those of hardshrink.
class HShrink : public Cell {
 public:
  MPC_CELL(HShrink)
  explicit HShrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor Construct(const Tensor& x) { return hardshrink(x, lambd_); }

 private:
  double lambd_;
};

/// x moved towards 0 by lambd. AMP classes and errors: those of softshrink.
class SoftShrink : public Cell {
 public:
  MPC_CELL(SoftShrink)
  explicit SoftShrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor Construct(const Tensor& x) { return softshrink(x, lambd_); }

 private:
  double lambd_;
};

}  // namespace mpc::nn
