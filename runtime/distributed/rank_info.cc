#include "runtime/distributed/rank_info.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/distributed/launch_environment.h"

namespace mpc::runtime {
namespace {

constexpr std::int64_t kNumberBytes = 8;
constexpr std::int64_t kMostEntries = 1 << 16;

class Writer {
 public:
  void Number(std::int64_t value) {
    for (int i = 0; i < kNumberBytes; ++i) bytes_.push_back(static_cast<char>(value >> 8 * i & 0xff));
  }
  void Text(const std::string& text) {
    Number(static_cast<std::int64_t>(text.size()));
    bytes_.append(text);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what Writer has written. After bytes that are missing or out of range, everything read is empty.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : rest_(bytes) {}

  std::int64_t Number() {
    if (rest_.size() < kNumberBytes) {
      Fail();
      return 0;
    }
    std::uint64_t value = 0;
    for (int i = 0; i < kNumberBytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << 8 * i;
    rest_.remove_prefix(kNumberBytes);
    return static_cast<std::int64_t>(value);
  }
  std::int64_t Number(std::int64_t from, std::int64_t to) {
    const std::int64_t value = Number();
    if (value >= from && value <= to) return value;
    Fail();
    return from;
  }
  std::string Text() {
    const std::int64_t size = Number(0, static_cast<std::int64_t>(rest_.size()));
    if (static_cast<std::size_t>(size) > rest_.size()) Fail();
    std::string text(rest_.substr(0, static_cast<std::size_t>(size)));
    rest_.remove_prefix(text.size());
    return text;
  }
  bool ok() const { return !failed_; }
  void Fail() {
    failed_ = true;
    rest_ = {};
  }

  absl::Status Finish(const std::string& what, const std::string& origin) {
    if (!failed_ && rest_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(origin, ": these bytes are no ", what));
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

void Write(Writer& writer, const NamedHashes& hashes) {
  writer.Number(static_cast<std::int64_t>(hashes.size()));
  for (const auto& [name, hash] : hashes) {
    writer.Text(name);
    writer.Text(hash);
  }
}

/// Names stand in order, each once, as they were written.
NamedHashes ReadHashes(Reader& reader) {
  NamedHashes hashes;
  const std::int64_t count = reader.Number(0, kMostEntries);
  for (std::int64_t i = 0; i < count && reader.ok(); ++i) {
    std::string name = reader.Text();
    std::string hash = reader.Text();
    if (!hashes.empty() && name <= hashes.rbegin()->first) reader.Fail();
    hashes.emplace_hint(hashes.end(), std::move(name), std::move(hash));
  }
  return hashes;
}

void Write(Writer& writer, const RankInfo& info) {
  writer.Number(info.rank);
  writer.Number(info.size);
  writer.Text(info.host);
  writer.Text(info.machine);
  writer.Number(info.pid);
  writer.Number(static_cast<std::int64_t>(info.nonce));
  writer.Number(static_cast<std::int64_t>(info.processors.size()));
  for (const int processor : info.processors) writer.Number(processor);
  writer.Number(info.quota);
  writer.Text(info.version);
  Write(writer, info.hashes);
  writer.Number(info.local_rank);
  writer.Number(info.local_size);
}

RankInfo ReadInfo(Reader& reader) {
  RankInfo info;
  info.rank = static_cast<int>(reader.Number(0, kMostRanks - 1));
  info.size = static_cast<int>(reader.Number(1, kMostRanks));
  info.host = reader.Text();
  info.machine = reader.Text();
  info.pid = reader.Number();
  info.nonce = static_cast<std::uint64_t>(reader.Number());
  const std::int64_t processors = reader.Number(0, kMostEntries);
  for (std::int64_t i = 0; i < processors && reader.ok(); ++i) {
    info.processors.push_back(static_cast<int>(reader.Number(0, std::numeric_limits<int>::max())));
  }
  info.quota = static_cast<int>(reader.Number(0, std::numeric_limits<int>::max()));
  info.version = reader.Text();
  info.hashes = ReadHashes(reader);
  info.local_rank = static_cast<int>(reader.Number(0, kMostRanks - 1));
  info.local_size = static_cast<int>(reader.Number(1, kMostRanks));
  return info;
}

void Write(Writer& writer, const Place& place) {
  writer.Number(place.step);
  writer.Text(place.what);
  writer.Number(place.unix_milliseconds);
  writer.Number(place.beat);
}

Place ReadPlace(Reader& reader) {
  Place place;
  place.step = reader.Number();
  place.what = reader.Text();
  place.unix_milliseconds = reader.Number();
  place.beat = reader.Number();
  return place;
}

template <typename T>
absl::StatusOr<T> Finished(Reader& reader, T value, const std::string& what, const std::string& origin) {
  if (absl::Status status = reader.Finish(what, origin); !status.ok()) return status;
  return value;
}

template <typename T>
std::string Written(const T& value) {
  Writer writer;
  Write(writer, value);
  return writer.Take();
}

/// "rank 0 has aaaa, ranks 1 and 2 have bbbb".
std::string WhoHasWhat(absl::Span<const std::pair<int, NamedHashes>> of_ranks, const std::string& name) {
  std::map<std::string, std::vector<int>> ranks_of;
  std::vector<std::string> order;
  for (const auto& [rank, hashes] : of_ranks) {
    const auto found = hashes.find(name);
    const std::string hash = found == hashes.end() ? "none" : found->second;
    std::vector<int>& ranks = ranks_of[hash];
    if (ranks.empty()) order.push_back(hash);
    ranks.push_back(rank);
  }
  std::vector<std::string> texts;
  texts.reserve(order.size());
  for (const std::string& hash : order) {
    const std::vector<int>& ranks = ranks_of[hash];
    texts.push_back(absl::StrCat(RanksText(ranks), ranks.size() == 1 ? " has " : " have ", hash));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace

std::string RankText(const RankInfo& info) {
  return absl::StrCat("rank ", info.rank, " (host ", info.host, ", process ", info.pid, ")");
}

std::string RanksText(absl::Span<const int> ranks) {
  if (ranks.size() == 1) return absl::StrCat("rank ", ranks[0]);
  if (ranks.empty()) return "no ranks";
  return absl::StrCat("ranks ", absl::StrJoin(ranks.first(ranks.size() - 1), ", "), " and ", ranks.back());
}

std::string PlaceText(const Place& place) {
  const std::string what = place.what.empty() ? "" : absl::StrCat("\"", place.what, "\"");
  if (place.step >= 0) return absl::StrCat("was last at step ", place.step, what.empty() ? "" : ", ", what);
  if (what.empty()) return "had not told yet where it was";
  return absl::StrCat("had told of no step, and was last in ", what);
}

absl::Status LossStatus(const Loss& loss) {
  return absl::UnavailableError(absl::StrCat(loss.who, " ", loss.why, "; it ", PlaceText(loss.place)));
}

std::string Encode(const RankInfo& info) { return Written(info); }
std::string Encode(const NamedHashes& hashes) { return Written(hashes); }
std::string Encode(const Place& place) { return Written(place); }

std::string Encode(const Loss& loss) {
  Writer writer;
  writer.Number(loss.rank);
  writer.Text(loss.who);
  writer.Text(loss.why);
  Write(writer, loss.place);
  return writer.Take();
}

std::string Encode(const Verdict& verdict) {
  Writer writer;
  writer.Number(static_cast<std::int64_t>(verdict.status.code()));
  writer.Text(std::string(verdict.status.message()));
  writer.Number(static_cast<std::int64_t>(verdict.ranks.size()));
  for (const RankInfo& info : verdict.ranks) Write(writer, info);
  return writer.Take();
}

absl::StatusOr<RankInfo> DecodeRankInfo(const std::string& bytes, const std::string& origin) {
  Reader reader(bytes);
  RankInfo info = ReadInfo(reader);
  return Finished(reader, std::move(info), "information of a rank", origin);
}

absl::StatusOr<NamedHashes> DecodeHashes(const std::string& bytes, const std::string& origin) {
  Reader reader(bytes);
  NamedHashes hashes = ReadHashes(reader);
  return Finished(reader, std::move(hashes), "hashes", origin);
}

absl::StatusOr<Place> DecodePlace(const std::string& bytes, const std::string& origin) {
  Reader reader(bytes);
  Place place = ReadPlace(reader);
  return Finished(reader, std::move(place), "place of a rank", origin);
}

absl::StatusOr<Loss> DecodeLoss(const std::string& bytes, const std::string& origin) {
  Reader reader(bytes);
  Loss loss;
  loss.rank = static_cast<int>(reader.Number(0, kMostRanks - 1));
  loss.who = reader.Text();
  loss.why = reader.Text();
  loss.place = ReadPlace(reader);
  return Finished(reader, std::move(loss), "loss of a rank", origin);
}

absl::StatusOr<Verdict> DecodeVerdict(const std::string& bytes, const std::string& origin) {
  Reader reader(bytes);
  Verdict verdict;
  const std::int64_t code = reader.Number(0, static_cast<std::int64_t>(absl::StatusCode::kUnauthenticated));
  const std::string message = reader.Text();
  verdict.status = absl::Status(static_cast<absl::StatusCode>(code), message);
  if (code == 0 && !message.empty()) reader.Fail();
  const std::int64_t count = reader.Number(0, kMostRanks);
  for (std::int64_t i = 0; i < count && reader.ok(); ++i) verdict.ranks.push_back(ReadInfo(reader));
  return Finished(reader, std::move(verdict), "verdict of a rendezvous", origin);
}

absl::Status CompareHashes(absl::Span<const std::pair<int, NamedHashes>> of_ranks) {
  std::set<std::string> differing;
  if (of_ranks.empty()) return absl::OkStatus();
  const NamedHashes& first = of_ranks[0].second;
  for (const auto& [rank, hashes] : of_ranks) {
    std::vector<NamedHashes::value_type> other;
    std::set_symmetric_difference(first.begin(), first.end(), hashes.begin(), hashes.end(), std::back_inserter(other));
    for (const auto& [name, hash] : other) differing.insert(name);
  }
  if (differing.empty()) return absl::OkStatus();
  const std::string& name = *differing.begin();
  std::string more;
  if (differing.size() > 1) more = absl::StrCat("; ", differing.size() - 1, " more differ");
  return absl::InvalidArgumentError(absl::StrCat("ranks differ in \"", name, "\": ", WhoHasWhat(of_ranks, name), more));
}

absl::Status CompareRanks(const RankInfo& first, const RankInfo& other) {
  if (first.size != other.size) {
    return absl::InvalidArgumentError(absl::StrCat(RankText(first), " was told of ", first.size, " ranks and ",
                                                   RankText(other), " of ", other.size,
                                                   ": all ranks must be told the same number"));
  }
  if (first.version != other.version) {
    return absl::InvalidArgumentError(absl::StrCat(RankText(first), " has mpc ", first.version, " and ",
                                                   RankText(other), " has mpc ", other.version,
                                                   ": all ranks must have the same version"));
  }
  return CompareHashes({{first.rank, first.hashes}, {other.rank, other.hashes}});
}

void FillLocalRanks(std::vector<RankInfo>& ranks) {
  std::map<std::pair<std::string, std::string>, int> sizes;
  for (RankInfo& info : ranks) info.local_rank = sizes[{info.host, info.machine}]++;
  for (RankInfo& info : ranks) info.local_size = sizes[{info.host, info.machine}];
}

}  // namespace mpc::runtime
