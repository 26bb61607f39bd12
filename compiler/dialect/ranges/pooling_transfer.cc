// Pooling and resizing: values that are selected or averaged in windows.
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

/// How many windows may read one element.
static double overlap(const Operands &in) {
  std::vector<int64_t> kernel = in.attributes.Get(attribute::kKernelSize),
                       strides = in.attributes.Get(attribute::kStrides);
  auto along = [&](int axis) { return std::ceil(double(kernel[size_t(axis)]) / double(strides[size_t(axis)])); };
  return along(0) * along(1);
}
static double window(const Operands &in) {
  std::vector<int64_t> kernel = in.attributes.Get(attribute::kKernelSize);
  return double(kernel[0] * kernel[1]);
}

/// The norms of whole samples of \p from, times \p factor. Rows and columns are other ones.
static void takeSampleNorms(Range &y, const Range &from, double factor) {
  y.sampleNorm = times(from.sampleNorm, factor);
  y.norm = times(from.norm, factor);
}

static void maxPool(const Operands &in, Results results) {
  Range y = in[0];
  forgetNorms(y);
  takeSampleNorms(y, in[0], std::sqrt(overlap(in)));
  y.peak = 0;
  y.typical = in[0].typical * 1.2;
  results[0] = y;
}
static void maxPoolGrad(const Operands &in, Results results) {
  double readers = overlap(in);
  Range dx = sumOf(withZero(in[0]), readers);
  takeSampleNorms(dx, in[0], std::sqrt(readers) * 1.001);
  dx.least = readers > 1 ? 0 : in[0].least;
  dx.typical = in[0].typical * std::sqrt(std::min(1.0, in.count(0) / in.resultCount()));
  dx.typicalPeak = in[0].typicalPeak * std::sqrt(readers);
  results[0] = dx;
}

static void avgPool(const Operands &in, Results results) {
  Range y = withZero(in[0]);
  takeSampleNorms(y, in[0], std::sqrt(overlap(in)) * 1.001);
  y.typical = in[0].typical;
  results[0] = y;
}
static void avgPoolGrad(const Operands &in, Results results) {
  double readers = overlap(in), pixels = window(in);
  // A window at the edge may divide by the pixels inside alone.
  std::vector<int64_t> padding = in.attributes.Get(attribute::kPadding);
  bool isInside = in.attributes.Get(attribute::kPadMode) == PadMode::kValid &&
                  llvm::all_of(padding, [](int64_t margin) { return margin == 0; });
  double divisor = isInside || in.attributes.Get(attribute::kCountIncludePad) ? pixels : 1;
  Range dx = sumOf(withZero(multiplied(in[0], 1 / divisor, 1 / divisor, 1)), readers);
  takeSampleNorms(dx, in[0], readers * std::sqrt(pixels) / divisor * 1.001);
  dx.typical = in[0].typical / pixels * std::sqrt(readers);
  results[0] = dx;
}

static void resize(const Operands &in, Results results) {
  Range y = Range::between(in[0].low, in[0].high);
  // A mean of up to four pixels, whose weights sum to 1 but for roundings.
  widen(y, in[0].magnitude() * 1e-3);
  y.typical = in[0].typical;
  results[0] = y;
}
static void resizeGrad(const Operands &in, Results results) {
  // No pixel has a weight above 1 in a pixel of the result.
  Range dx = sumOf(withZero(in[0]), in.extent(0, 2) * in.extent(0, 1) * in.extent(0, 3));
  dx.typical = in[0].typical * std::sqrt(std::max(1.0, in.count(0) / in.resultCount()));
  results[0] = dx;
}

void addPoolingTransfers(TransferTable &table) {
  table["max_pool2d"] = maxPool;
  table["max_pool2d_grad"] = maxPoolGrad;
  table["avg_pool2d"] = avgPool;
  table["avg_pool2d_grad"] = avgPoolGrad;
  table["resize"] = resize;
  table["resize_grad"] = resizeGrad;
}

} // namespace mpc::ranges
