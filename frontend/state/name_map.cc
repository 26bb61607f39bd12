#include "frontend/state/name_map.h"

#include <algorithm>

namespace mpc {
namespace {

/// Where the last part of a dotted name begins.
std::size_t MemberBegin(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? 0 : dot + 1;
}

bool IsBelow(std::string_view name, std::string_view path) {
  return path.empty() || (name.size() > path.size() && name.substr(0, path.size()) == path && name[path.size()] == '.');
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
  map.ignored_ = {"num_batches_tracked"};
  return map;
}

NameMap& NameMap::Rename(std::string own, std::string foreign) {
  paths_.emplace_back(std::move(own), std::move(foreign));
  return *this;
}

std::string NameMap::Foreign(std::string_view own) const {
  const std::size_t begin = MemberBegin(own);
  std::string_view member = own.substr(begin);
  for (const auto& [known, foreign] : members_) {
    if (member == known) {
      member = foreign;
      break;
    }
  }
  const std::pair<std::string, std::string>* best = nullptr;
  for (const auto& candidate : paths_) {
    if (IsBelow(own, candidate.first) && (best == nullptr || candidate.first.size() > best->first.size())) {
      best = &candidate;
    }
  }
  const std::string name = std::string(own.substr(0, begin)) + std::string(member);
  if (best == nullptr) return name;
  const std::string rest = best->first.empty() ? name : name.substr(best->first.size() + 1);
  return best->second.empty() ? rest : best->second + "." + rest;
}

bool NameMap::Ignores(std::string_view foreign) const {
  return std::find(ignored_.begin(), ignored_.end(), foreign.substr(MemberBegin(foreign))) != ignored_.end();
}

}  // namespace mpc
