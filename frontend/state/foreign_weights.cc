#include "frontend/state/foreign_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/state/finite_conversion.h"
#include "frontend/state/tensor_rows.h"

namespace mpc::internal {
namespace {

using ParameterMap = std::map<std::string, Tensor>;

std::string Quoted(const std::string& name) { return absl::StrCat("'", name, "'"); }

/// What NameMap::Join of an empty list does.
std::string WithoutEntries(const std::string& name) {
  return absl::StrCat("'", name, "' has no entry of a file: NameMap::Join was given none for its path");
}

std::string QuotedList(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(Quoted(name));
  return absl::StrJoin(quoted, ", ");
}

bool HasValue(const Tensor& tensor) { return tensor.defined() && tensor.status().ok() && tensor.concrete(); }

/// Whether the dotted `name` is `path` or lies below it.
bool LiesIn(const std::string& name, const std::string& path) {
  return path.empty() || name == path ||
         (name.size() > path.size() && name[path.size()] == '.' && name.compare(0, path.size(), path) == 0);
}

/// The number of the first element that is not a number.
std::optional<std::size_t> FirstNan(const Tensor& tensor) {
  const std::vector<float> values = tensor.ToFloats();
  const auto found = std::find_if(values.begin(), values.end(), [](float value) { return std::isnan(value); });
  if (found == values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - values.begin());
}

/// `shape` as the file has it, or the other way round.
Shape InLayout(Shape shape, const ForeignLayout& layout) {
  if (layout.transposed && shape.size() == 2) std::swap(shape[0], shape[1]);
  return shape;
}

Tensor InLayout(const Tensor& tensor, const ForeignLayout& layout) {
  return layout.transposed && tensor.rank() == 2 ? Transposed(tensor) : tensor;
}

/// The path that stands before each of `plain` in one of `prefixed`; empty: there is none.
std::string PrefixOf(const std::vector<std::string>& plain, const std::vector<std::string>& prefixed) {
  if (plain.empty()) return "";
  const std::set<std::string> known(prefixed.begin(), prefixed.end());
  const std::string end = "." + plain.front();
  for (const std::string& name : prefixed) {
    if (!absl::EndsWith(name, end)) continue;
    const std::string prefix = name.substr(0, name.size() - end.size());
    const auto is_there = [&](const std::string& each) { return known.contains(absl::StrCat(prefix, ".", each)); };
    if (!prefix.empty() && std::all_of(plain.begin(), plain.end(), is_there)) return prefix;
  }
  return "";
}

/// An entry of the file under the name that the map gives it.
struct Entry {
  std::string name;  ///< the file's
  const Tensor* value = nullptr;
  bool used = false;
};

class ForeignFitter {
 public:
  ForeignFitter(nn::Cell& net, const ParameterMap& entries, const LoadOptions& options) : net_(net), options_(options) {
    for (const auto& [name, parameter] : net.ParametersAndNames()) parameters_.emplace(name, parameter);
    std::vector<std::string> names;
    for (const auto& [name, tensor] : entries) names.push_back(name);
    const std::vector<std::string> meanings = options.names.Meanings(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto [place, is_new] = entries_.emplace(meanings[i], Entry{names[i], &entries.at(names[i])});
      if (!is_new) {
        Problem(absl::StrCat(Quoted(place->second.name), " and ", Quoted(names[i]), " stand for the same parameter"));
      }
    }
  }

  WeightsFit Fit() {
    ResolveRepeats();
    for (const auto& [name, parameter] : net_.ParametersAndNames()) FitParameter(name, parameter);
    for (const auto& [meaning, entry] : entries_) {
      if (entry.used || options_.names.Ignores(meaning)) continue;
      fit_.report.unexpected.push_back(entry.name);
      if (options_.strict) Problem(absl::StrCat(Quoted(entry.name), " is no parameter of ", net_.TypeName()));
    }
    if (!fit_.problems.empty()) fit_.advice = PrefixAdvice();
    return std::move(fit_);
  }

 private:
  void Problem(std::string text) { fit_.problems.push_back(std::move(text)); }

  /// What to do where a prefix is all that the missing names lack in the file, or have too much here.
  std::string PrefixAdvice() const {
    const std::vector<std::string>& there = fit_.report.unexpected;
    if (const std::string prefix = PrefixOf(missing_, there); !prefix.empty()) {
      return absl::StrCat("the file's names begin with '", prefix, ".': NameMap::Prefix(\"", prefix,
                          "\") of LoadOptions::names takes it away");
    }
    const std::string prefix = PrefixOf(there, missing_);
    if (prefix.empty()) return "";
    const std::string lacks = absl::StrCat("the file's names lack '", prefix, ".'");
    const bool is_of_network = std::any_of(parameters_.begin(), parameters_.end(),
                                           [&](const auto& parameter) { return LiesIn(parameter.first, prefix); });
    if (!is_of_network) return absl::StrCat(lacks, ", which LoadOptions::names puts before those of the network");
    return absl::StrCat(lacks, ": NameMap::Rename(\"", prefix, "\", \"\") of LoadOptions::names leaves it out");
  }

  /// What repeats another entry is compared with it, or stands for it where the file has no other.
  void ResolveRepeats() {
    for (const auto& [meaning, of] : options_.names.Repeats()) {
      const auto repeat = entries_.find(meaning);
      if (repeat == entries_.end()) continue;
      const auto original = entries_.find(of);
      if (original == entries_.end()) {
        entries_.emplace(of, repeat->second);
      } else {
        const Tensor& a = *repeat->second.value;
        const Tensor& b = *original->second.value;
        if (HasValue(a) && HasValue(b) && (a.spec() != b.spec() || a.bytes() != b.bytes())) {
          Problem(absl::StrCat(Quoted(repeat->second.name), " and ", Quoted(original->second.name),
                               " differ, but are one parameter of ", net_.TypeName()));
        }
      }
      entries_.at(meaning).used = true;
    }
  }

  void FitParameter(const std::string& name, const Parameter& parameter) {
    const ForeignLayout layout = options_.names.LayoutOf(name);
    const bool left_out = std::any_of(options_.filter_prefix.begin(), options_.filter_prefix.end(),
                                      [&name](const std::string& path) { return LiesIn(name, path); });
    if (left_out) {
      for (const std::string& entry : layout.entries) {
        if (const auto found = entries_.find(entry); found != entries_.end()) found->second.used = true;
      }
      return;
    }
    if (layout.entries.empty()) return Problem(WithoutEntries(name));
    const std::optional<std::vector<Tensor>> parts = PartsOf(name, layout);
    if (!parts.has_value()) return;
    const std::string shown = Shown(name, layout.entries);
    if (!std::all_of(parts->begin(), parts->end(), HasValue)) return Problem(absl::StrCat(shown, " has no value"));
    const std::optional<Tensor> value = ValueOf(name, parameter, layout, *parts);
    if (!value.has_value()) return;
    if (const std::optional<std::size_t> nan = FirstNan(*value); nan.has_value()) {
      return Problem(absl::StrCat(shown, " holds NaN, first at element ", *nan));
    }
    Tensor converted = value->To(parameter.dtype());
    if (const std::string lost = LostValues(*value, converted); !lost.empty()) {
      return Problem(absl::StrCat(shown, " ", lost));
    }
    fit_.assignments.emplace_back(parameter, std::move(converted));
    fit_.report.loaded.push_back(name);
  }

  static std::string Shown(const std::string& name, const std::vector<std::string>& entries) {
    if (entries.size() == 1 && entries.front() == name) return Quoted(name);
    return absl::StrCat(QuotedList(entries), " (", name, ")");
  }

  /// The entries that hold `name`; empty where one is missing.
  std::optional<std::vector<Tensor>> PartsOf(const std::string& name, const ForeignLayout& layout) {
    std::vector<Tensor> parts;
    for (const std::string& meaning : layout.entries) {
      const auto found = entries_.find(meaning);
      if (found == entries_.end()) {
        missing_.push_back(meaning);
        if (options_.strict) Problem(absl::StrCat(Shown(name, {meaning}), " is missing"));
        continue;
      }
      if (found->second.used && layout.sharers.empty()) {
        Problem(absl::StrCat(Shown(name, {meaning}), " stands for two parameters"));
      }
      found->second.used = true;
      parts.push_back(*found->second.value);
    }
    if (parts.size() == layout.entries.size()) return parts;
    fit_.report.missing.push_back(name);
    return std::nullopt;
  }

  /// The Parameter's value from its entries; empty, with a problem, where they do not fit.
  std::optional<Tensor> ValueOf(const std::string& name, const Parameter& parameter, const ForeignLayout& layout,
                                const std::vector<Tensor>& parts) {
    Shape whole = parameter.shape();
    std::int64_t begin = 0;
    for (const std::string& sharer : layout.sharers) {
      const auto found = parameters_.find(sharer);
      if (found == parameters_.end() || found->second.shape().empty() || whole.empty()) {
        Problem(absl::StrCat(Shown(name, layout.entries), " has rows of '", sharer, "', which ", net_.TypeName(),
                             " does not have"));
        return std::nullopt;
      }
      if (sharer == name) begin = whole[0] - parameter.shape()[0];
      if (sharer != name) whole[0] += found->second.shape()[0];
    }
    if (!Fits(parts, {parameter.dtype(), whole}, layout)) {
      std::vector<std::string> specs;
      for (const Tensor& part : parts) specs.push_back(part.spec().ToString());
      const std::string with =
          layout.sharers.empty() ? "" : absl::StrCat(" in ", absl::StrJoin(layout.sharers, " and "));
      Problem(absl::StrCat(Shown(name, layout.entries), parts.size() == 1 ? " is " : " are ",
                           absl::StrJoin(specs, ", "), " in the file, ",
                           TensorSpec{parameter.dtype(), InLayout(whole, layout)}.ToString(), " in the network", with,
                           layout.transposed && whole.size() == 2 ? ", with its axes exchanged" : ""));
      return std::nullopt;
    }
    std::vector<Tensor> laid_out;
    for (const Tensor& part : parts) laid_out.push_back(InLayout(part, layout));
    const Tensor joined = laid_out.size() == 1 ? laid_out.front() : JoinedRows(laid_out);
    return layout.sharers.empty() ? joined : RowsOf(joined, begin, parameter.shape()[0]);
  }

  /// Whether the parts are `wanted`, or have its rows between them. Floating types convert.
  static bool Fits(const std::vector<Tensor>& parts, const TensorSpec& wanted, const ForeignLayout& layout) {
    const Shape& whole = wanted.shape;
    std::int64_t rows = 0;
    for (const Tensor& part : parts) {
      Shape shape = InLayout(part.shape(), layout);
      const bool converts = IsFloating(part.dtype()) && IsFloating(wanted.dtype);
      if (part.dtype() != parts.front().dtype() || (part.dtype() != wanted.dtype && !converts)) return false;
      if (parts.size() == 1) return shape == whole;
      if (shape.size() != whole.size() || shape.empty()) return false;
      rows += shape[0];
      shape[0] = whole[0];
      if (shape != whole) return false;
    }
    return rows == whole[0];
  }

  nn::Cell& net_;
  const LoadOptions& options_;
  std::map<std::string, Parameter> parameters_;
  std::map<std::string, Entry> entries_;  ///< by what they mean
  std::vector<std::string> missing_;      ///< entries that the file lacks
  WeightsFit fit_;
};

/// Collects the rows of entries that several Parameters share.
class SharedEntries {
 public:
  /// Adds the rows of `name`. The entry is complete, and given back, with the last of its Parameters.
  std::optional<Tensor> Add(const std::string& name, const ForeignLayout& layout, const Tensor& value) {
    ParameterMap& rows = rows_[layout.entries.front()];
    rows[name] = value;
    if (rows.size() < layout.sharers.size()) return std::nullopt;
    std::vector<Tensor> ordered;
    for (const std::string& sharer : layout.sharers) ordered.push_back(rows[sharer]);
    rows_.erase(layout.entries.front());
    return JoinedRows(ordered);
  }
  /// The entries whose Parameters are not all here.
  const std::map<std::string, ParameterMap>& incomplete() const { return rows_; }

 private:
  std::map<std::string, ParameterMap> rows_;
};

}  // namespace

WeightsFit FitWeights(nn::Cell& net, const ParameterMap& entries, const LoadOptions& options) {
  return ForeignFitter(net, entries, options).Fit();
}

absl::StatusOr<std::vector<std::pair<std::string, Tensor>>> ForeignTensors(nn::Cell& net, const NameMap& names) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  SharedEntries shared;
  for (const auto& [name, parameter] : net.ParametersAndNames()) {
    absl::StatusOr<Tensor> value = parameter.Value();
    if (!value.ok()) return value.status();
    const ForeignLayout layout = names.LayoutOf(name);
    if (layout.entries.empty()) return absl::InvalidArgumentError(WithoutEntries(name));
    if (!layout.sharers.empty()) {
      const std::optional<Tensor> whole = shared.Add(name, layout, *value);
      if (whole.has_value()) tensors.emplace_back(layout.entries.front(), InLayout(*whole, layout));
      continue;
    }
    const auto parts = static_cast<std::int64_t>(layout.entries.size());
    if (parts == 1) {
      tensors.emplace_back(layout.entries.front(), InLayout(*value, layout));
      continue;
    }
    if (value->rank() == 0 || value->shape()[0] % parts != 0) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is ", value->spec().ToString(), ", which the ",
                                                     parts, " entries ", QuotedList(layout.entries),
                                                     " do not share equally"));
    }
    const std::int64_t rows = value->shape()[0] / parts;
    for (std::int64_t part = 0; part < parts; ++part) {
      tensors.emplace_back(layout.entries[static_cast<std::size_t>(part)],
                           InLayout(RowsOf(*value, part * rows, rows), layout));
    }
  }
  for (const auto& [entry, rows] : shared.incomplete()) {
    return absl::InvalidArgumentError(absl::StrCat("'", entry, "' has rows of '", rows.begin()->first,
                                                   "' and of parameters that ", net.TypeName(), " does not have"));
  }
  return tensors;
}

}  // namespace mpc::internal
