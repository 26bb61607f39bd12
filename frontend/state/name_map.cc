#include "frontend/state/name_map.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace mpc {
namespace {

constexpr std::string_view kAny = "*";

/// No parts for the empty path.
std::vector<std::string> PartsOf(std::string_view path) {
  if (path.empty()) return {};
  return absl::StrSplit(absl::string_view(path.data(), path.size()), '.');
}

/// `path` without a dot behind it.
std::string WithoutLastDot(std::string path) {
  if (path.size() > 1 && path.back() == '.') path.pop_back();
  return path;
}

/// Whether `name` is `path` or lies below it.
bool IsAtOrBelow(const std::vector<std::string>& name, const std::vector<std::string>& path) {
  if (name.size() < path.size()) return false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != kAny && path[i] != name[i]) return false;
  }
  return true;
}

/// Whether `name` is `path` or ends in it behind a dot.
bool EndsInPath(std::string_view name, std::string_view path) {
  if (name.size() < path.size() || name.substr(name.size() - path.size()) != path) return false;
  return name.size() == path.size() || name[name.size() - path.size() - 1] == '.';
}

/// The first of the parts of `name` behind those that a rule has matched.
std::vector<std::string>::const_iterator ToRest(const std::vector<std::string>& name, std::size_t matched) {
  return name.begin() + static_cast<std::ptrdiff_t>(matched);
}

/// What each `*` of `path` stands for in `name`, which lies at or below it.
std::vector<std::string> Captures(const std::vector<std::string>& name, const std::vector<std::string>& path) {
  std::vector<std::string> captures;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == kAny) captures.push_back(name[i]);
  }
  return captures;
}

/// `path` with the captures in place of its `*`, and with `rest` behind it.
std::string Expanded(const std::string& path, const std::vector<std::string>& captures,
                     const std::vector<std::string>& rest) {
  std::vector<std::string> parts = PartsOf(path);
  std::size_t next = 0;
  for (std::string& part : parts) {
    if (part == kAny && next < captures.size()) part = captures[next++];
  }
  parts.insert(parts.end(), rest.begin(), rest.end());
  return absl::StrJoin(parts, ".");
}

}  // namespace

NameMap NameMap::PyTorch() {
  NameMap map;
  map.format_ = "pt";
  map.members_ = {{"gamma", "weight"},
                  {"beta", "bias"},
                  {"moving_mean", "running_mean"},
                  {"moving_variance", "running_var"},
                  {"embedding_table", "weight"}};
  // Elsewhere in_proj may be a layer of one's own.
  for (const char* attention : {"self_attn", "multihead_attn"}) {
    for (const char* member : {"weight", "bias"}) {
      map.members_.emplace_back(absl::StrCat(attention, ".in_proj.", member),
                                absl::StrCat(attention, ".in_proj_", member));
    }
  }
  map.ignored_members_ = {"num_batches_tracked"};
  return map;
}

NameMap& NameMap::Rename(std::string own, std::string foreign) { return Join(std::move(own), {std::move(foreign)}); }

NameMap& NameMap::Join(std::string own, std::vector<std::string> foreign) {
  for (std::string& path : foreign) path = WithoutLastDot(std::move(path));
  rules_.push_back({PartsOf(WithoutLastDot(std::move(own))), std::move(foreign), {}});
  return *this;
}

NameMap& NameMap::Split(const std::vector<std::string>& own, const std::string& foreign) {
  std::vector<std::string> sharers;
  for (const std::string& path : own) sharers.push_back(WithoutLastDot(path));
  for (const std::string& path : sharers) rules_.push_back({PartsOf(path), {WithoutLastDot(foreign)}, sharers});
  return *this;
}

NameMap& NameMap::Transpose(const std::string& own) {
  transposed_.push_back(PartsOf(WithoutLastDot(own)));
  return *this;
}

NameMap& NameMap::Prefix(std::string foreign) {
  prefix_ = WithoutLastDot(std::move(foreign));
  return *this;
}

NameMap& NameMap::OptionalPrefix(std::string foreign) {
  optional_prefix_ = WithoutLastDot(std::move(foreign));
  return *this;
}

NameMap& NameMap::Ignore(const std::string& foreign) {
  ignored_.push_back(PartsOf(WithoutLastDot(foreign)));
  return *this;
}

NameMap& NameMap::Repeat(std::string foreign, std::string of) {
  repeats_.emplace_back(std::move(foreign), std::move(of));
  return *this;
}

NameMap& NameMap::Alias(std::string written, std::string meant) {
  aliases_.emplace_back(std::move(written), std::move(meant));
  return *this;
}

const NameMap::Rule* NameMap::FindRule(const Path& own) const {
  const auto rank = [](const Rule& rule) {
    const auto any = std::count(rule.own.begin(), rule.own.end(), kAny);
    return std::tuple(rule.own.size(), -any);
  };
  const Rule* best = nullptr;
  for (const Rule& rule : rules_) {
    if (IsAtOrBelow(own, rule.own) && (best == nullptr || rank(rule) >= rank(*best))) best = &rule;
  }
  return best;
}

std::string NameMap::ForeignMember(const std::string& own) const {
  for (const auto& [known, foreign] : members_) {
    if (EndsInPath(own, known)) return absl::StrCat(own.substr(0, own.size() - known.size()), foreign);
  }
  return own;
}

std::string NameMap::Prefixed(const std::string& foreign) const {
  return prefix_.empty() ? foreign : absl::StrCat(prefix_, ".", foreign);
}

std::string_view NameMap::Unprefixed(std::string_view foreign) const {
  const bool begins = !prefix_.empty() && foreign.size() > prefix_.size() && foreign[prefix_.size()] == '.' &&
                      foreign.substr(0, prefix_.size()) == prefix_;
  return begins ? foreign.substr(prefix_.size() + 1) : foreign;
}

ForeignLayout NameMap::LayoutOf(std::string_view own) const {
  const Path parts = PartsOf(own);
  ForeignLayout layout;
  layout.transposed = std::any_of(transposed_.begin(), transposed_.end(),
                                  [&parts](const Path& path) { return IsAtOrBelow(parts, path); });
  const Rule* const rule = FindRule(parts);
  const std::size_t matched = rule == nullptr ? 0 : rule->own.size();
  const Path rest(ToRest(parts, matched), parts.end());
  const Path foreign = PartsOf(ForeignMember(std::string(own)));
  // A rule that matches a part which the member's name would replace has given it another one.
  const bool keeps = foreign.size() > matched && std::equal(parts.begin(), ToRest(parts, matched), foreign.begin());
  const Path foreign_rest = keeps ? Path(ToRest(foreign, matched), foreign.end()) : rest;
  if (rule == nullptr) {
    layout.entries = {Prefixed(absl::StrJoin(foreign_rest, "."))};
    return layout;
  }
  const std::vector<std::string> captures = Captures(parts, rule->own);
  for (const std::string& path : rule->foreign) {
    layout.entries.push_back(Prefixed(Expanded(path, captures, foreign_rest)));
  }
  for (const std::string& path : rule->sharers) layout.sharers.push_back(Expanded(path, captures, rest));
  return layout;
}

std::string NameMap::Foreign(std::string_view own) const {
  const std::vector<std::string> entries = LayoutOf(own).entries;
  return entries.empty() ? "" : entries.front();
}

std::vector<std::string> NameMap::PathsWithout(const std::vector<std::string>& own) const {
  std::vector<Path> names;
  for (const std::string& name : own) names.push_back(PartsOf(name));
  const auto is_there = [&names](const Path& path) {
    return std::any_of(names.begin(), names.end(), [&path](const Path& name) { return IsAtOrBelow(name, path); });
  };
  std::vector<std::string> without;
  for (std::size_t i = preset_rules_; i < rules_.size(); ++i) {
    // A split whose other parameters are there is refused with them.
    const std::vector<std::string>& sharers = rules_[i].sharers;
    const bool shares = std::any_of(sharers.begin(), sharers.end(),
                                    [&](const std::string& sharer) { return is_there(PartsOf(sharer)); });
    if (!shares && !is_there(rules_[i].own)) without.push_back(absl::StrJoin(rules_[i].own, "."));
  }
  for (std::size_t i = preset_transposed_; i < transposed_.size(); ++i) {
    if (!is_there(transposed_[i])) without.push_back(absl::StrJoin(transposed_[i], "."));
  }
  return without;
}

bool NameMap::Ignores(std::string_view foreign) const {
  const Path parts = PartsOf(Unprefixed(foreign));
  if (parts.empty()) return false;
  if (std::find(ignored_members_.begin(), ignored_members_.end(), parts.back()) != ignored_members_.end()) return true;
  return std::any_of(ignored_.begin(), ignored_.end(), [&parts](const Path& path) { return IsAtOrBelow(parts, path); });
}

bool NameMap::IsOfAnotherFirstPart(std::string_view foreign) const {
  const Path name = PartsOf(foreign);
  const auto same = [&name](const std::string& path) {
    const Path parts = PartsOf(path);
    return !name.empty() && !parts.empty() && parts.front() == name.front();
  };
  return std::any_of(rules_.begin(), rules_.end(),
                     [&](const Rule& rule) { return std::any_of(rule.foreign.begin(), rule.foreign.end(), same); }) ||
         std::any_of(ignored_.begin(), ignored_.end(),
                     [&](const Path& path) { return !path.empty() && same(path.front()); }) ||
         std::any_of(repeats_.begin(), repeats_.end(), [&](const auto& repeat) { return same(repeat.first); });
}

std::vector<std::string> NameMap::Meanings(const std::vector<std::string>& entries) const {
  const std::string begin = optional_prefix_ + ".";
  const bool lacks =
      !optional_prefix_.empty() && std::none_of(entries.begin(), entries.end(), [&](const std::string& entry) {
        return Unprefixed(entry).substr(0, begin.size()) == begin;
      });
  std::vector<std::string> meanings;
  for (const std::string& entry : entries) {
    const std::string_view rest = Unprefixed(entry);
    std::string meant(rest);
    for (const auto& [written, known] : aliases_) {
      if (!EndsInPath(meant, written)) continue;
      meant = meant.substr(0, meant.size() - written.size()) + known;
      break;
    }
    if (lacks && !IsOfAnotherFirstPart(meant)) meant = begin + meant;
    // A name without the prefix that all have is no name of this map.
    meanings.push_back(rest.size() == entry.size() ? meant : Prefixed(meant));
  }
  return meanings;
}

std::vector<std::pair<std::string, std::string>> NameMap::Repeats() const {
  std::vector<std::pair<std::string, std::string>> repeats;
  for (const auto& [entry, of] : repeats_) repeats.emplace_back(Prefixed(entry), Prefixed(of));
  return repeats;
}

}  // namespace mpc
