#include "tests/compiler/codegen/fusion_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compiler/dialect/attribute_conversion.h"
#include "tests/compiler/op_case_module.h"

namespace mpc::test {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::uint8_t kGuardByte = 0xA5;

double Number(Fill fill, std::mt19937& random) {
  std::normal_distribution<double> normal;
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  switch (fill) {
    case Fill::kNumbers: {
      constexpr double kSpecial[] = {0.0,
                                     -0.0,
                                     1e-40,
                                     1e-7,
                                     6e4,
                                     3e38,
                                     std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN()};
      return between(0, 9) == 0 ? kSpecial[between(0, 8)] : normal(random);
    }
    case Fill::kFinite:
      return normal(random);
    case Fill::kPositive:
      return std::exp2(std::uniform_real_distribution<double>(-1, 1)(random));
    case Fill::kIntegers:
      return between(-3, 3);
    case Fill::kHalf:
      return 0.5;
    case Fill::kHuge:
      return between(-3, 3) * 1e38;
    case Fill::kLabels:
      return between(0, 9);
    case Fill::kBools:
      return between(0, 1);
  }
  return 0;
}

bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)); }

}  // namespace

ParsedFusion::ParsedFusion(const FusionCase& region) : module(ParseModule(ThreadContext(), region.text())) {
  EXPECT_TRUE(module) << region.text();
  if (module) module->walk([&](FusionOp op) { fusion = op; });
}

GuardedBuffer::GuardedBuffer(std::size_t bytes) : storage_(bytes + 3 * kGuard, kGuardByte), bytes_(bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
  offset_ = (address + 2 * kGuard - 1) / kGuard * kGuard - address;
  std::memset(data(), 0xFF, bytes);
}

bool GuardedBuffer::GuardsAreWhole() const {
  const auto whole = [](auto begin, auto end) {
    return std::all_of(begin, end, [](std::uint8_t byte) { return byte == kGuardByte; });
  };
  const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(offset_);
  return whole(storage_.begin(), begin) && whole(begin + static_cast<std::ptrdiff_t>(bytes_), storage_.end());
}

FusionOperands::FusionOperands(const FusionCase& region, FusionOp fusion) : inputs_(region.operands.size()) {
  std::mt19937 random(7);
  for (mlir::Type type : fusion->getOperandTypes()) {
    specs_.push_back(toTensorSpec(mlir::cast<mlir::RankedTensorType>(type)));
  }
  for (mlir::Type type : fusion->getResultTypes()) {
    specs_.push_back(toTensorSpec(mlir::cast<mlir::RankedTensorType>(type)));
  }
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    GuardedBuffer& buffer = buffers_.emplace_back(specs_[i].bytes());
    pointers_.push_back(buffer.data());
    if (i >= inputs_) continue;
    reference::Tensor tensor{specs_[i], {}};
    for (std::int64_t e = 0; e < specs_[i].num_elements(); ++e) {
      tensor.values.push_back(Number(region.operands[i].fill, random));
    }
    reference::ToStorage(tensor, buffer.data());
    const auto* bytes = static_cast<const std::uint8_t*>(buffer.data());
    contents_.emplace_back(bytes, bytes + buffer.bytes());
  }
  shared_.resize(inputs_);
}

void FusionOperands::Share(std::size_t output, std::size_t input) {
  pointers_[inputs_ + output] = pointers_[input];
  shared_[input] = true;
}

std::vector<reference::Tensor> FusionOperands::Results() const {
  std::vector<reference::Tensor> results;
  for (std::size_t i = inputs_; i < specs_.size(); ++i) {
    results.push_back(reference::FromStorage(specs_[i], pointers_[i]));
  }
  return results;
}

void FusionOperands::ExpectNothingElseWritten() const {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    EXPECT_TRUE(buffers_[i].GuardsAreWhole()) << "around operand " << i;
    if (i < inputs_ && !shared_[i]) {
      EXPECT_EQ(std::memcmp(pointers_[i], contents_[i].data(), contents_[i].size()), 0) << "input " << i;
    }
  }
}

void ExpectEqualBits(const std::vector<reference::Tensor>& ours, const std::vector<reference::Tensor>& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t r = 0; r < ours.size(); ++r) {
    for (std::size_t i = 0; i < ours[r].values.size(); ++i) {
      ASSERT_TRUE(SameBits(ours[r].values[i], theirs[r].values[i]))
          << "result " << r << " [" << i << "]: " << ours[r].values[i] << " and " << theirs[r].values[i];
    }
  }
}

void ExpectWithinBounds(const FusionCase& region, const std::vector<reference::Tensor>& ours,
                        const std::vector<reference::Tensor>& theirs) {
  if (region.relative == 0 && region.absolute == 0) return ExpectEqualBits(ours, theirs);
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t r = 0; r < ours.size(); ++r) {
    for (std::size_t i = 0; i < ours[r].values.size(); ++i) {
      const double a = ours[r].values[i], b = theirs[r].values[i];
      const double allowed = region.absolute + region.relative * std::max(std::fabs(a), std::fabs(b));
      ASSERT_TRUE(SameBits(a, b) || std::fabs(a - b) <= allowed)
          << "result " << r << " [" << i << "]: " << a << " and " << b << " may differ by " << allowed;
    }
  }
}

}  // namespace mpc::test
