// Convolutions: each element is a product of a filter and a patch.
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

/// Facts of a filter: OIHW.
struct Filter {
  explicit Filter(ArrayRef<int64_t> shape)
      : outputs(double(shape[0])), window(double(shape[2] * shape[3])), patch(countOf(shape) / outputs) {}
  double outputs; ///< filters
  double window;  ///< pixels of a filter
  double patch;   ///< elements of a filter
};

static double strideArea(const Operands &in) {
  std::vector<int64_t> strides = in.attributes.Get(attribute::kStrides);
  return double(strides[0] * strides[1]);
}

/// The bounds of \p y where it is the weight's linear map of \p x with windows of \p window pixels. Each element of x
/// is read by at most as many patches.
static void boundNorms(Range &y, const Range &x, const Range &weight, double window) {
  y.sampleNorm = times(times(weight.norm, x.sampleNorm), std::sqrt(window));
  y.norm = times(times(weight.norm, x.norm), std::sqrt(window));
}

static void addBias(Range &y, const Operands &in) {
  if (in.size() <= 2)
    return;
  y.low += in[2].low;
  y.high += in[2].high;
  forgetNorms(y);
  y.typical = inSquares(y.typical, in[2].typical);
}

/// The convolution of operands 0 and 1 before an activation.
static Range convolve(const Operands &in) {
  const Range &x = in[0], &weight = in[1];
  Filter filter(in.shape(1));
  // Padding is zero.
  Range y = sumOf(withZero(product(x, weight)), filter.patch);
  double patchNorm = std::min(x.sampleNorm, times(x.magnitude(), std::sqrt(filter.patch)));
  limit(y, times(patchNorm, weight.sampleNorm) * (1 + sumError(filter.patch)));
  boundNorms(y, x, weight, filter.window);
  y.typical = std::sqrt(filter.patch) * x.typical * weight.typical;
  return y;
}

static void conv2d(const Operands &in, Results results) {
  Range y = convolve(in);
  addBias(y, in);
  Activation activation = in.attributes.Get(attribute::kActivation);
  if (activation != Activation::kNone) {
    double largest = std::max(1.0, y.magnitude() * 1.001), typical = y.typical;
    y = Range::between(activation == Activation::kRelu ? 0 : -largest, largest);
    y.typical = typical;
  }
  results[0] = y;
}

static void conv2dStatistics(const Operands &in, Results results) {
  results[0] = convolve(in);
  double size = results[0].magnitude(), epsilon = in.attributes.Get(attribute::kEpsilon);
  results[1] = Range::between(results[0].low, results[0].high);
  results[2] = Range::between(0, times(size, size) * 1.01);
  results[3] = Range::between(0, 1.01 / std::sqrt(epsilon));
  results[1].typical = 0;
  results[2].typical = results[0].typical * results[0].typical;
  results[3].typical = 1 / std::sqrt(results[2].typical + epsilon);
}

/// What the filters of operand 1 spread of operand 0: the transposed map. Filters are those of its first axis.
static Range spread(const Operands &in) {
  const Range &dy = in[0], &weight = in[1];
  Filter filter(in.shape(1));
  double terms = filter.outputs * filter.window;
  Range dx = sumOf(withZero(product(dy, weight)), terms);
  double patchNorm = std::min(dy.sampleNorm, times(dy.magnitude(), std::sqrt(terms)));
  double filterNorm = std::min(weight.norm, times(weight.magnitude(), std::sqrt(terms)));
  limit(dx, times(patchNorm, filterNorm) * (1 + sumError(terms)));
  boundNorms(dx, dy, weight, filter.window);
  dx.typical = std::sqrt(std::max(terms / strideArea(in), 1.0)) * dy.typical * weight.typical;
  return dx;
}
static void conv2dGradInput(const Operands &in, Results results) { results[0] = spread(in); }
static void convTranspose2d(const Operands &in, Results results) {
  Range y = spread(in);
  addBias(y, in);
  results[0] = y;
}

static void conv2dGradWeight(const Operands &in, Results results) {
  const Range &x = in[0], &dy = in[1];
  double samples = in.extent(0, 0), filters = double(in.resultShape()[0]);
  double positions = in.count(1) / (samples * filters), terms = samples * positions;
  Range dweight = sumOf(withZero(product(x, dy)), terms);
  double bound = std::min(times(x.norm, dy.norm), samples * times(x.sampleNorm, dy.sampleNorm));
  limit(dweight, bound * (1 + sumError(terms)));
  // Samples may push the same way. Positions of one sample are expected to differ.
  dweight.typical = samples * std::sqrt(positions) * x.typical * dy.typical;
  results[0] = dweight;
}

void addConvolutionTransfers(TransferTable &table) {
  table["conv2d"] = conv2d;
  table["conv2d_statistics"] = conv2dStatistics;
  table["conv2d_grad_input"] = conv2dGradInput;
  table["conv2d_grad_weight"] = conv2dGradWeight;
  table["conv_transpose2d"] = convTranspose2d;
}

} // namespace mpc::ranges
