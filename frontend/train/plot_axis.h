// An axis of a drawing: which values it spans, and where its ticks are. Not part of the public API.
#pragma once

#include <string>
#include <vector>

namespace mpc::internal {

class PlotAxis {
 public:
  enum class Scale {
    kLinear,
    kDecimal,  ///< logarithmic, with ticks at powers of ten, or at 1, 2 and 5 times powers where there are few
    kBinary,   ///< logarithmic, with ticks at powers of two
    kWhole,    ///< linear, with ticks at whole numbers
  };
  struct Tick {
    double place = 0;  ///< from 0 to 1
    std::string label;
  };

  /// Spans `low` to `high`, both at most 1e300 in size, and a margin where both are equal. A logarithmic axis takes
  /// values from 1e-300 on. Has at most 10 ticks, at round numbers.
  PlotAxis(Scale scale, double low, double high);

  /// Where `value` stands: 0 at the low end, 1 at the high end, cut off there.
  double PlaceOf(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  bool logarithmic() const { return scale_ == Scale::kDecimal || scale_ == Scale::kBinary; }

 private:
  double Transform(double value) const;
  void AddLinearTicks();
  void AddDecimalTicks();
  void AddBinaryTicks();
  void AddTick(double value, std::string label);

  Scale scale_;
  double low_ = 0, high_ = 1;  ///< after Transform
  std::vector<Tick> ticks_;
};

/// "2²⁴".
std::string PowerOfTwo(int exponent);

}  // namespace mpc::internal
