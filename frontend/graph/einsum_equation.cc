#include "frontend/graph/einsum_equation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mpc::internal {
namespace {

constexpr char kEllipsis[] = "...";
constexpr std::size_t kDots = 3;

std::string NameOf(AxisLabel label) {
  return label < 0 ? std::string("an axis of \"...\"")
                   : absl::StrCat("\"", std::string(1, static_cast<char>(label)), "\"");
}

/// Reads one equation. Errors name it.
class Reader {
 public:
  explicit Reader(std::string equation) : given_(std::move(equation)) {}

  absl::StatusOr<EinsumEquation> Read(const std::vector<Shape>& shapes) {
    std::string text(given_);
    std::erase(text, ' ');
    const std::vector<std::string> sides = absl::StrSplit(text, "->");
    if (sides.size() > 2) return Error("has more than one \"->\"");
    const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
    if (terms.size() != shapes.size()) {
      return Error(absl::StrCat("has ", terms.size(), " terms for ", shapes.size(), " operands"));
    }
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (absl::Status status = ReadOperand(terms[i], shapes[i]); !status.ok()) return status;
    }
    absl::Status status = sides.size() == 2 ? ReadResult(sides[1]) : absl::OkStatus();
    if (!status.ok()) return status;
    if (sides.size() == 1) ImplyResult();
    return equation_;
  }

 private:
  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("einsum equation \"", given_, "\" ", what));
  }

  // The labels of a term, whose "..." stands for `elided` axes.
  absl::StatusOr<std::vector<AxisLabel>> Labels(const std::string& term, std::size_t elided) const {
    std::vector<AxisLabel> labels;
    for (std::size_t at = 0; at < term.size(); ++at) {
      if (absl::ascii_isalpha(static_cast<unsigned char>(term[at]))) {
        labels.push_back(term[at]);
      } else if (term.compare(at, kDots, kEllipsis) == 0) {
        if (term.find(kEllipsis, at + kDots) != term.npos) return Error("has \"...\" twice in one term");
        for (std::size_t axis = elided; axis > 0; --axis) labels.push_back(-static_cast<AxisLabel>(axis));
        at += kDots - 1;
      } else {
        return Error(absl::StrCat("has \"", term.substr(at, 1), "\", which is no letter, \",\", \"->\" or \"...\""));
      }
    }
    return labels;
  }

  absl::Status ReadOperand(const std::string& term, const Shape& shape) {
    const bool elides = term.find(kEllipsis) != term.npos;
    const std::size_t letters = term.size() - (elides ? kDots : 0);
    if (elides ? letters > shape.size() : letters != shape.size()) {
      return Error(absl::StrCat("has the term \"", term, "\" for an operand of rank ", shape.size()));
    }
    absl::StatusOr<std::vector<AxisLabel>> labels = Labels(term, shape.size() - letters);
    if (!labels.ok()) return labels.status();
    if (elides) elided_ = std::max(elided_, shape.size() - letters);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      // Within a term, axes of extent 1 are not repeated to match others.
      const std::size_t first = std::find(labels->begin(), labels->end(), (*labels)[axis]) - labels->begin();
      if (shape[first] != shape[axis]) {
        return Error(absl::StrCat("gives ", NameOf((*labels)[axis]), " the extents ", shape[first], " and ",
                                  shape[axis], " in the term \"", term, "\""));
      }
      std::int64_t& extent = equation_.extents.try_emplace((*labels)[axis], 1).first->second;
      if (extent != 1 && shape[axis] != 1 && extent != shape[axis]) {
        return Error(absl::StrCat("gives ", NameOf((*labels)[axis]), " the extents ", extent, " and ", shape[axis]));
      }
      extent = std::max(extent, shape[axis]);
    }
    equation_.operands.push_back(*std::move(labels));
    return absl::OkStatus();
  }

  absl::Status ReadResult(const std::string& term) {
    absl::StatusOr<std::vector<AxisLabel>> labels = Labels(term, elided_);
    if (!labels.ok()) return labels.status();
    for (auto label = labels->begin(); label != labels->end(); ++label) {
      if (equation_.extents.find(*label) == equation_.extents.end()) {
        return Error(absl::StrCat("has ", NameOf(*label), " in its result and in no operand"));
      }
      if (std::find(labels->begin(), label, *label) != label) {
        return Error(absl::StrCat("has ", NameOf(*label), " twice in its result"));
      }
    }
    equation_.result = *std::move(labels);
    return absl::OkStatus();
  }

  // Labels of "..." come first, as their order among the labels says, then the letters that occur once.
  void ImplyResult() {
    std::map<AxisLabel, int> counts;
    for (const std::vector<AxisLabel>& labels : equation_.operands) {
      for (const AxisLabel label : labels) ++counts[label];
    }
    for (const auto& [label, count] : counts) {
      if (label < 0 || count == 1) equation_.result.push_back(label);
    }
  }

  std::string given_;
  std::size_t elided_ = 0;  ///< axes that the longest "..." stands for
  EinsumEquation equation_;
};

}  // namespace

absl::StatusOr<EinsumEquation> ReadEinsumEquation(const std::string& equation, const std::vector<Shape>& shapes) {
  return Reader(equation).Read(shapes);
}

}  // namespace mpc::internal
