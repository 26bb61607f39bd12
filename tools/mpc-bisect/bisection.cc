#include "tools/mpc-bisect/bisection.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/state/tensor_difference.h"
#include "tools/mpc-bisect/beginning.h"
#include "tools/mpc-bisect/hash_files.h"
#include "tools/mpc-bisect/result_pairs.h"

namespace mpc::tools {
namespace {

using Position = std::pair<std::size_t, std::size_t>;

/// Operations of one Program alone that are named; the others are counted.
constexpr std::size_t kMostNamed = 3;
constexpr std::size_t kMostEnds = 8;

std::string Head(const char* name, const CapsuleFile& file) {
  std::string text = absl::StrCat(name, ": ", file.path, ", step ", file.capsule.step, " (", file.capsule.reason, ")");
  for (const char* key : {"model", "mpc", "device", "threads"}) {
    const auto entry = file.capsule.origin.find(key);
    if (entry != file.capsule.origin.end()) absl::StrAppend(&text, ", ", key, " ", entry->second);
  }
  if (file.capsule.runs > 1) absl::StrAppend(&text, ", ", DescribeRuns(file.capsule));
  return text + "\n";
}

std::vector<std::string> Identities(const CapsuleFile& file, const StepResults& computed, bool same_ranks) {
  std::vector<std::string> identities;
  // In one process the update is a sequence that the last micro-batch calls. Several have it in the step.
  for (const StepResult& result : computed.results) {
    identities.push_back(IdentityOf(file.capsule, result, same_ranks));
  }
  return identities;
}

/// Leaves out what depends on the number of ranks.
void KeepResultsOfAnyRanks(const CapsuleFile& file, StepResults& computed) {
  std::erase_if(computed.results, [&](const StepResult& result) { return !IsOfAnyRanks(file.capsule, result); });
}

std::string Describe(const CapsuleFile& file, const StepResult& result) {
  const StepCapsule& capsule = file.capsule;
  const std::string text = DescribeOperation(ProgramOfRun(capsule, result.run), result);
  return capsule.runs == 1 ? text : absl::StrCat(text, ", ", DescribeRun(capsule, result.run));
}

/// The operations of results [begin, end), which the other Program does not have.
std::string Alone(const char* name, const CapsuleFile& file, const StepResults& computed, std::size_t begin,
                  std::size_t end) {
  std::string text;
  std::size_t named = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (named++ < kMostNamed) {
      absl::StrAppend(&text, "  ", name, " alone computes before it: ", Describe(file, computed.results[i]), "\n");
    }
  }
  if (named > kMostNamed) absl::StrAppend(&text, "  and ", named - kMostNamed, " more results\n");
  return text;
}

/// What the replay here does not repeat: then the operations here need not be those of the run.
std::string Unfaithful(const char* name, const StepReplay& replay) {
  if (replay.differences.empty()) return "";
  return absl::StrCat("the replay here does not repeat the run of ", name, " bit for bit: ", replay.differences.size(),
                      replay.differences.size() == 1 ? " difference, " : " differences, the first is ",
                      replay.differences.front(), "\n");
}

class Comparison {
 public:
  Comparison(const CapsuleFile& first, const CapsuleFile& second) : first_(first), second_(second) {}

  absl::StatusOr<Bisection> Run() {
    absl::StatusOr<Beginning> beginning = CompareBeginnings(first_.capsule, second_.capsule);
    if (!beginning.ok()) {
      return absl::Status(beginning.status().code(),
                          absl::StrCat(first_.path, " (A) and ", second_.path,
                                       " (B) cannot be compared: ", beginning.status().message()));
    }
    bisection_.differs = beginning->differs;
    Say(Head("A", first_), Head("B", second_), "what the step begins with:\n");
    for (const std::string& line : beginning->lines) Say(line, "\n");
    SayDevices();
    if (absl::Status status = CompareResults(); !status.ok()) return status;
    SayEnds();
    if (!bisection_.differs)
      Say("no difference: what both steps begin with, what is compared and what they leave is equal, bit for bit\n");
    return std::move(bisection_);
  }

 private:
  template <typename... Parts>
  void Say(const Parts&... parts) {
    absl::StrAppend(&bisection_.text, parts...);
  }

  absl::Status CompareResults() {
    absl::StatusOr<StepResults> a = ComputeResults(first_);
    if (!a.ok()) return a.status();
    absl::StatusOr<StepResults> b = ComputeResults(second_);
    if (!b.ok()) return b.status();
    Say(Unfaithful("A", a->replay), Unfaithful("B", b->replay));
    const bool same_ranks = first_.capsule.ranks == second_.capsule.ranks;
    if (!same_ranks) {
      KeepResultsOfAnyRanks(first_, *a);
      KeepResultsOfAnyRanks(second_, *b);
      Say("in another number of ranks sums over some of the micro-batches are others: they are not compared\n");
    }
    const std::vector<Position> pairs =
        PairInOrder(Identities(first_, *a, same_ranks), Identities(second_, *b, same_ranks));
    SayGranularity(a->results.size(), b->results.size(), pairs.size());
    Position behind = {0, 0};  // the positions behind the last equal pair
    for (const auto& [i, j] : pairs) {
      if (a->results[i].hash != b->results[j].hash) return SayFirst(*a, *b, behind, {i, j});
      behind = {i + 1, j + 1};
    }
    Say("no result that is compared differs\n");
    return absl::OkStatus();
  }

  /// What a difference says where the steps ran on devices that round differently.
  void SayDevices() {
    const std::string a = DeviceOf(first_.capsule.program), b = DeviceOf(second_.capsule.program);
    if (a == b) return;
    Say("A ran on ", a, ", B on ", b,
        ": their kernels add in other orders and round differently, so that sums lie a few ulps apart; the first "
        "difference below need be no fault\n");
  }

  void SayGranularity(std::size_t a, std::size_t b, std::size_t pairs) {
    if (pairs == a && pairs == b) {
      Say("both steps compute the same ", pairs, " results; all are compared\n");
      return;
    }
    Say(pairs, " results are compared, of ", a, " in A and ", b,
        " in B: those that agree in operation, Cell, phase and type\n");
  }

  absl::Status SayFirst(const StepResults& a, const StepResults& b, const Position& behind, const Position& at) {
    bisection_.differs = true;
    const runtime::Program& program = ProgramOfRun(first_.capsule, a.results[at.first].run);
    const absl::StatusOr<Tensor> value = ComputeResult(first_, a.results[at.first].position);
    if (!value.ok()) return value.status();
    const absl::StatusOr<Tensor> other = ComputeResult(second_, b.results[at.second].position);
    if (!other.ok()) return other.status();
    const auto difference = FindDifference(value->spec(), value->bytes(), other->bytes());
    if (!difference.has_value()) {
      return absl::InternalError(
          absl::StrCat("two replays of one capsule differ: ", DescribeOperation(program, a.results[at.first])));
    }
    const std::string here = Describe(first_, a.results[at.first]);
    const std::string there = Describe(second_, b.results[at.second]);
    Say("first operation whose result differs: ", here, "\n");
    if (here != there) Say("  in B it is ", there, "\n");
    Say("  ", DescribeResult(program, a.results[at.first]), ": ", difference->ToString("A", "B"), "\n");
    Say(Alone("A", first_, a, behind.first, at.first), Alone("B", second_, b, behind.second, at.second));
    return absl::OkStatus();
  }

  void SayEnds() {
    const std::vector<std::string> ends = CompareEnds(first_.capsule, second_.capsule);
    if (ends.empty()) return;
    bisection_.differs = true;
    Say("after the step, in the runs, ", ends.size(), ends.size() == 1 ? " differs" : " differ", " of ",
        first_.capsule.record.size(), " outputs and ", first_.capsule.after.size(), " state entries:\n");
    for (std::size_t i = 0; i < std::min(ends.size(), kMostEnds); ++i) Say("  ", ends[i], "\n");
    if (ends.size() > kMostEnds) Say("  and ", ends.size() - kMostEnds, " more\n");
  }

  const CapsuleFile& first_;
  const CapsuleFile& second_;
  Bisection bisection_;
};

}  // namespace

absl::StatusOr<Bisection> BisectCapsules(const CapsuleFile& first, const CapsuleFile& second) {
  return Comparison(first, second).Run();
}

absl::StatusOr<Bisection> BisectFiles(const BisectOptions& options) {
  // The error of a pair of two kinds is that of the one that is no file of hashes.
  if (IsHashFile(options.first_path) || IsHashFile(options.second_path)) {
    return BisectHashFiles(options.first_path, options.second_path);
  }
  CapsuleFile files[2];
  const std::string* paths[] = {&options.first_path, &options.second_path};
  for (std::size_t i = 0; i < 2; ++i) {
    absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(*paths[i]);
    if (!capsule.ok()) return capsule.status();
    files[i] = {*paths[i], *std::move(capsule), static_cast<int>(options.threads)};
  }
  return BisectCapsules(files[0], files[1]);
}

}  // namespace mpc::tools
