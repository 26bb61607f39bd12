#include "frontend/state/foreign_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/cell_members.h"
#include "frontend/state/finite_conversion.h"
#include "frontend/state/tensor_rows.h"

namespace mpc::internal {
namespace {

using nn::internal::PathsOfParameter;
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

/// The first of the paths of each Parameter, as Cell::ParametersAndNames has them.
std::vector<std::string> NamesOf(const std::vector<PathsOfParameter>& parameters) {
  std::vector<std::string> names;
  for (const PathsOfParameter& each : parameters) names.push_back(each.paths.front());
  return names;
}

/// What is wrong where `option` was given `paths` that name none of the `parameters` of `net`; empty without any.
std::string UnknownPaths(const std::string& option, const std::vector<std::string>& paths, const nn::Cell& net,
                         const std::vector<PathsOfParameter>& parameters) {
  if (paths.empty()) return "";
  return absl::StrCat(option, " has ", QuotedList(paths), ", which ", paths.size() == 1 ? "names" : "name",
                      " no parameter of ", net.TypeName(), "; a path ends where a name ends, and the names are ",
                      absl::StrJoin(NamesOf(parameters), ", "));
}

/// What is wrong with the network's paths in `names`; else empty.
std::string UnknownPaths(const NameMap& names, const nn::Cell& net, const std::vector<PathsOfParameter>& parameters) {
  const std::vector<std::string> paths = names.PathsWithout(NamesOf(parameters));
  std::string problem = UnknownPaths("NameMap", paths, net, parameters);
  for (const PathsOfParameter& each : parameters) {
    const auto known = std::find_if(paths.begin(), paths.end(), [&](const auto& path) { return each.LiesIn(path); });
    if (known == paths.end()) continue;
    absl::StrAppend(&problem, "; ", Quoted(*known), " is tied to ", Quoted(each.paths.front()), ", which is its name");
  }
  return problem;
}

/// What is wrong with the entry of a matrix that is transposed for some of its Parameters alone; else empty.
std::string TransposedForSome(const NameMap& names, const Parameter& parameter, const ForeignLayout& layout) {
  if (parameter.shape().size() != 2) return "";
  const auto is_transposed = [&](const std::string& sharer) { return names.LayoutOf(sharer).transposed; };
  const auto is = std::find_if(layout.sharers.begin(), layout.sharers.end(), is_transposed);
  const auto is_not = std::find_if_not(layout.sharers.begin(), layout.sharers.end(), is_transposed);
  if (is == layout.sharers.end() || is_not == layout.sharers.end()) return "";
  return absl::StrCat(Quoted(layout.entries.front()), " is transposed for ", Quoted(*is), " and not for ",
                      Quoted(*is_not), "; give all of them to NameMap::Transpose, or none");
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
    const std::vector<PathsOfParameter> parameters = nn::internal::ParametersAndPaths(net);
    for (const PathsOfParameter& each : parameters) {
      parameters_.emplace(each.paths.front(), each.parameter);
      const std::vector<std::string> others(each.paths.begin() + 1, each.paths.end());
      if (!others.empty()) other_paths_.emplace(each.paths.front(), others);
    }
    LeaveOut(parameters);
    if (std::string problem = UnknownPaths(options.names, net, parameters); !problem.empty()) {
      Problem(std::move(problem));
    }
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
    ResolveTied();
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

  /// Finds the Parameters that LoadOptions::filter_prefix names.
  void LeaveOut(const std::vector<PathsOfParameter>& parameters) {
    std::vector<std::string> unknown;
    for (const std::string& path : options_.filter_prefix) {
      bool found = false;
      for (const PathsOfParameter& each : parameters) {
        if (!each.LiesIn(path)) continue;
        found = true;
        left_out_.insert(each.paths.front());
      }
      if (!found) unknown.push_back(path);
    }
    std::string problem = UnknownPaths("LoadOptions::filter_prefix", unknown, net_, parameters);
    if (!problem.empty()) Problem(std::move(problem));
  }

  /// What the file has for a Parameter that is not loaded is no surprise.
  void PassOver(const ForeignLayout& layout) {
    for (const std::string& entry : layout.entries) {
      if (const auto found = entries_.find(entry); found != entries_.end()) found->second.used = true;
    }
  }

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
    const bool is_of_network = std::any_of(parameters_.begin(), parameters_.end(), [&](const auto& parameter) {
      return nn::internal::LiesIn(parameter.first, prefix);
    });
    if (!is_of_network) return absl::StrCat(lacks, ", which LoadOptions::names puts before those of the network");
    return absl::StrCat(lacks, ": NameMap::Rename(\"", prefix, "\", \"\") of LoadOptions::names leaves it out");
  }

  /// What repeats another entry is compared with it, or stands for it where the file has no other.
  void ResolveRepeats() {
    for (const auto& [meaning, of] : options_.names.Repeats()) {
      const auto repeat = entries_.find(meaning);
      if (repeat == entries_.end()) continue;
      TakeRepeat(repeat->second, of);
    }
  }

  /// `repeat` has what the entry that means `of` has, or stands for it where the file has no such.
  void TakeRepeat(Entry& repeat, const std::string& of) {
    const auto original = entries_.find(of);
    if (original == entries_.end()) {
      entries_.emplace(of, repeat);
    } else {
      const Tensor& a = *repeat.value;
      const Tensor& b = *original->second.value;
      if (HasValue(a) && HasValue(b) && (a.spec() != b.spec() || a.bytes() != b.bytes())) {
        Problem(absl::StrCat(Quoted(repeat.name), " and ", Quoted(original->second.name),
                             " differ, but are one parameter of ", net_.TypeName()));
      }
    }
    repeat.used = true;
  }

  /// Whether a Parameter has the entry `meaning` by its own name.
  bool IsOfParameter(const std::string& meaning) const {
    return std::any_of(parameters_.begin(), parameters_.end(), [&](const auto& parameter) {
      return absl::c_linear_search(options_.names.LayoutOf(parameter.first).entries, meaning);
    });
  }

  /// What a file has for another path of a tied Parameter repeats its entry.
  void ResolveTied() {
    for (const auto& [name, others] : other_paths_) {
      const ForeignLayout own = options_.names.LayoutOf(name);
      if (own.entries.size() != 1 || !own.sharers.empty()) continue;
      for (const std::string& other : others) {
        const ForeignLayout layout = options_.names.LayoutOf(other);
        if (layout.entries.size() != 1 || !layout.sharers.empty() || layout.transposed != own.transposed) continue;
        const auto repeat = entries_.find(layout.entries.front());
        if (repeat == entries_.end() || repeat->second.used || IsOfParameter(layout.entries.front())) continue;
        if (left_out_.contains(name)) {
          repeat->second.used = true;
        } else {
          TakeRepeat(repeat->second, own.entries.front());
        }
      }
    }
  }

  void FitParameter(const std::string& name, const Parameter& parameter) {
    const ForeignLayout layout = options_.names.LayoutOf(name);
    if (left_out_.contains(name)) return PassOver(layout);
    if (layout.entries.empty()) return Problem(WithoutEntries(name));
    if (std::string problem = TransposedForSome(options_.names, parameter, layout); !problem.empty()) {
      if (!absl::c_linear_search(fit_.problems, problem)) Problem(std::move(problem));
      return PassOver(layout);
    }
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
  std::map<std::string, std::vector<std::string>> other_paths_;  ///< other paths of tied Parameters, by names
  std::set<std::string> left_out_;                               ///< Parameters at and below LoadOptions::filter_prefix
  std::map<std::string, Entry> entries_;                         ///< by what they mean
  std::vector<std::string> missing_;                             ///< entries that the file lacks
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
  const std::string unknown = UnknownPaths(names, net, nn::internal::ParametersAndPaths(net));
  if (!unknown.empty()) return absl::InvalidArgumentError(unknown);
  for (const auto& [name, parameter] : net.ParametersAndNames()) {
    absl::StatusOr<Tensor> value = parameter.Value();
    if (!value.ok()) return value.status();
    const ForeignLayout layout = names.LayoutOf(name);
    if (layout.entries.empty()) return absl::InvalidArgumentError(WithoutEntries(name));
    if (!layout.sharers.empty()) {
      if (const std::string problem = TransposedForSome(names, parameter, layout); !problem.empty()) {
        return absl::InvalidArgumentError(problem);
      }
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
