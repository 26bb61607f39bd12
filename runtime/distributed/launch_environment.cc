#include "runtime/distributed/launch_environment.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace mpc::runtime {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr int kFirstDerivedPort = 16384;
constexpr int kDerivedPorts = 16384;
/// Slurm's own steps, such as batch scripts and shells of salloc, have numbers from here on.
constexpr std::int64_t kFirstSpecialStep = 0xfffffff0;

constexpr char kTorchrunVariables[] =
    "torchrun sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT together";
constexpr char kOpenMpiVariables[] =
    "mpirun of Open MPI sets OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK and "
    "OMPI_COMM_WORLD_LOCAL_SIZE together";
constexpr char kSlurmVariables[] =
    "srun sets SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_NODEID, SLURM_STEP_TASKS_PER_NODE, "
    "SLURM_JOB_ID and SLURM_STEP_ID together";

/// FNV-1a, so that all ranks derive the same port from the same text.
int DerivedPort(absl::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return kFirstDerivedPort + static_cast<int>((hash ^ hash >> 32) % kDerivedPorts);
}

/// A whole number without sign or spaces.
std::optional<std::int64_t> ParseNumber(absl::string_view text) {
  std::int64_t value = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

/// The variables of this process. What is wrong is told by `what_is_set`, a sentence on the launcher.
class Variables {
 public:
  explicit Variables(const std::function<const char*(const char*)>& get) : get_(get) {}

  std::optional<std::string> Find(const char* name) const {
    const char* value = get_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }
  bool Has(const char* name) const { return Find(name).has_value(); }
  std::string Text(const char* name) const { return Find(name).value_or("not set"); }

  absl::StatusOr<std::string> Require(const char* name, const char* what_is_set) const {
    std::optional<std::string> value = Find(name);
    if (value.has_value()) return *std::move(value);
    return absl::InvalidArgumentError(absl::StrCat(name, " is not set: ", what_is_set));
  }
  absl::StatusOr<int> Number(const char* name, int from, int to, const char* what_is_set) const {
    const absl::StatusOr<std::string> text = Require(name, what_is_set);
    if (!text.ok()) return text.status();
    const std::optional<std::int64_t> value = ParseNumber(*text);
    if (value.has_value() && *value >= from && *value <= to) return static_cast<int>(*value);
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is \"", *text, "\": whole numbers from ", from, " to ", to, " are accepted"));
  }

 private:
  const std::function<const char*(const char*)>& get_;
};

/// The names of the four numbers that every launcher gives.
struct NumberNames {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

absl::Status RankBelowSize(const char* rank_name, int rank, const char* size_name, int size) {
  if (rank < size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(rank_name, " is ", rank, " and ", size_name, " is ", size,
                                                 ": with this size, 0 to ", size - 1, " are accepted"));
}

absl::Status CheckNumbers(const NumberNames& names, const LaunchEnvironment& read) {
  if (absl::Status status = RankBelowSize(names.rank, read.rank, names.size, read.size); !status.ok()) return status;
  if (read.local_size > read.size) {
    return absl::InvalidArgumentError(absl::StrCat(names.local_size, " is ", read.local_size, " and ", names.size,
                                                   " is ", read.size, ": a machine has no more ranks than there are"));
  }
  return RankBelowSize(names.local_rank, read.local_rank, names.local_size, read.local_size);
}

absl::Status ReadNumbers(const Variables& variables, const NumberNames& names, const char* what_is_set,
                         LaunchEnvironment* read) {
  const struct {
    const char* name;
    int from, to;
    int* value;
  } numbers[] = {{names.rank, 0, kMostRanks - 1, &read->rank},
                 {names.size, 1, kMostRanks, &read->size},
                 {names.local_rank, 0, kMostRanks - 1, &read->local_rank},
                 {names.local_size, 1, kMostRanks, &read->local_size}};
  for (const auto& number : numbers) {
    const absl::StatusOr<int> value = variables.Number(number.name, number.from, number.to, what_is_set);
    if (!value.ok()) return value.status();
    *number.value = *value;
  }
  return CheckNumbers(names, *read);
}

absl::StatusOr<int> MasterPort(const Variables& variables, const char* what_is_set) {
  return variables.Number("MASTER_PORT", 1, std::numeric_limits<std::uint16_t>::max(), what_is_set);
}

/// MASTER_PORT, or one that is derived from the launcher's name of the job.
absl::StatusOr<int> PortOfJob(const Variables& variables, const std::optional<std::string>& job,
                              const char* job_names) {
  if (variables.Has("MASTER_PORT")) return MasterPort(variables, "");
  if (job.has_value()) return DerivedPort(*job);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no port for rank 0: neither MASTER_PORT nor ", job_names, " is set"));
}

/// An error where RANK and WORLD_SIZE contradict what another launcher says. torchrun may run below that launcher.
absl::Status CheckOuter(const Variables& variables, const LaunchEnvironment& read, const char* rank_name,
                        const char* size_name) {
  if (variables.Has("TORCHELASTIC_RUN_ID") || !variables.Has(rank_name) || !variables.Has(size_name)) {
    return absl::OkStatus();
  }
  const std::optional<std::int64_t> rank = ParseNumber(variables.Text(rank_name));
  const std::optional<std::int64_t> size = ParseNumber(variables.Text(size_name));
  const bool agree = !size.has_value() || read.size > *size || (read.size == *size && rank == read.rank);
  if (agree) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("RANK is ", read.rank, " and WORLD_SIZE is ", read.size, ", but ",
                                                 rank_name, " is ", variables.Text(rank_name), " and ", size_name,
                                                 " is ", variables.Text(size_name),
                                                 ": unset RANK and WORLD_SIZE, or make them equal to these"));
}

absl::StatusOr<LaunchEnvironment> ReadTorchrun(const Variables& variables) {
  constexpr NumberNames kNames = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
  LaunchEnvironment read;
  read.launcher = "torchrun";
  if (absl::Status status = ReadNumbers(variables, kNames, kTorchrunVariables, &read); !status.ok()) return status;
  absl::StatusOr<std::string> address = variables.Require("MASTER_ADDR", kTorchrunVariables);
  if (!address.ok()) return address.status();
  const absl::StatusOr<int> port = MasterPort(variables, kTorchrunVariables);
  if (!port.ok()) return port.status();
  read.address = *std::move(address);
  read.port = *port;
  if (variables.Text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    read.port = DerivedPort(absl::StrCat(*port, "/", variables.Text("TORCHELASTIC_RUN_ID")));
    if (read.port == *port) read.port = kFirstDerivedPort + (*port + 1 - kFirstDerivedPort) % kDerivedPorts;
  }
  absl::Status status = CheckOuter(variables, read, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (status.ok()) status = CheckOuter(variables, read, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (!status.ok()) return status;
  return read;
}

/// Open MPI 5 names a job in PMIX_NAMESPACE, Open MPI 4 in all of these.
std::optional<std::string> OpenMpiJob(const Variables& variables) {
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (std::optional<std::string> job = variables.Find(name)) return job;
  }
  const std::optional<std::string> uri = variables.Find("OMPI_MCA_orte_hnp_uri");
  if (!uri.has_value()) return std::nullopt;
  return uri->substr(0, uri->find(';'));
}

absl::StatusOr<LaunchEnvironment> ReadOpenMpi(const Variables& variables) {
  constexpr NumberNames kNames = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                                  "OMPI_COMM_WORLD_LOCAL_SIZE"};
  LaunchEnvironment read;
  read.launcher = "Open MPI";
  if (absl::Status status = ReadNumbers(variables, kNames, kOpenMpiVariables, &read); !status.ok()) return status;
  if (const std::optional<std::string> address = variables.Find("MASTER_ADDR")) {
    read.address = *address;
  } else if (read.local_size < read.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("MASTER_ADDR is not set, and ", read.local_size, " of ", read.size,
                     " ranks are on this machine: say where rank 0 listens, as in mpirun -x MASTER_ADDR=host"));
  }
  const absl::StatusOr<int> port =
      PortOfJob(variables, OpenMpiJob(variables), "PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid or OMPI_MCA_orte_hnp_uri");
  if (!port.ok()) return port.status();
  read.port = *port;
  return read;
}

/// The first host of Slurm's list: "node01" of "node[01-03,07],gpu1".
std::optional<std::string> FirstHost(absl::string_view list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    const char c = list[i];
    if (c == '[') {
      const std::size_t close = list.find(']', i);
      const std::size_t digits = list.find_first_not_of("0123456789", i + 1);
      if (close == absl::string_view::npos || digits == i + 1 || digits > close) return std::nullopt;
      absl::StrAppend(&host, list.substr(i + 1, digits - i - 1));
      i = close;
    } else if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_') {
      host.push_back(c);
    } else {
      return std::nullopt;
    }
  }
  if (host.empty()) return std::nullopt;
  return host;
}

/// The number at `node` of Slurm's list of tasks: "2(x3),1" is 2, 2, 2, 1.
std::optional<int> TasksOfNode(absl::string_view list, int node) {
  std::int64_t first = 0;
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    std::int64_t repeats = 1;
    if (absl::ConsumeSuffix(&part, ")")) {
      const std::vector<absl::string_view> pair = absl::StrSplit(part, "(x");
      if (pair.size() != 2 || ParseNumber(pair[1]).value_or(0) < 1) return std::nullopt;
      part = pair[0];
      repeats = std::min<std::int64_t>(*ParseNumber(pair[1]), kMostRanks);
    }
    const std::optional<std::int64_t> tasks = ParseNumber(part);
    if (!tasks.has_value() || *tasks < 1 || *tasks > kMostRanks) return std::nullopt;
    first += repeats;
    if (node < first) return static_cast<int>(*tasks);
  }
  return std::nullopt;
}

absl::StatusOr<int> SlurmLocalSize(const Variables& variables) {
  const absl::StatusOr<int> node = variables.Number("SLURM_NODEID", 0, kMostRanks - 1, kSlurmVariables);
  if (!node.ok()) return node.status();
  const absl::StatusOr<std::string> list = variables.Require("SLURM_STEP_TASKS_PER_NODE", kSlurmVariables);
  if (!list.ok()) return list.status();
  if (const std::optional<int> tasks = TasksOfNode(*list, *node)) return *tasks;
  return absl::InvalidArgumentError(absl::StrCat("SLURM_STEP_TASKS_PER_NODE is \"", *list, "\" and SLURM_NODEID is ",
                                                 *node, ": a list such as \"2(x3),1\" with this node is accepted"));
}

absl::StatusOr<std::string> SlurmAddress(const Variables& variables, bool one_machine) {
  if (std::optional<std::string> address = variables.Find("MASTER_ADDR")) return *std::move(address);
  if (one_machine) return kLoopback;
  const absl::StatusOr<std::string> list =
      variables.Require("SLURM_STEP_NODELIST", "srun sets it; MASTER_ADDR says in its place where rank 0 listens");
  if (!list.ok()) return list.status();
  if (std::optional<std::string> host = FirstHost(*list)) return *std::move(host);
  return absl::InvalidArgumentError(
      absl::StrCat("SLURM_STEP_NODELIST is \"", *list, "\": a list such as \"node[01-03,07]\" is accepted"));
}

/// Whether this is a process of a step of srun.
bool InSlurmStep(const Variables& variables) {
  if (!variables.Has("SLURM_PROCID")) return false;
  const std::optional<std::string> step = variables.Find("SLURM_STEP_ID");
  return step.has_value() && ParseNumber(*step).value_or(0) < kFirstSpecialStep;
}

absl::StatusOr<LaunchEnvironment> ReadSlurm(const Variables& variables) {
  LaunchEnvironment read;
  read.launcher = "Slurm";
  const char* size_name = variables.Has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  const absl::StatusOr<int> rank = variables.Number("SLURM_PROCID", 0, kMostRanks - 1, kSlurmVariables);
  if (!rank.ok()) return rank.status();
  const absl::StatusOr<int> size = variables.Number(size_name, 1, kMostRanks, kSlurmVariables);
  if (!size.ok()) return size.status();
  const absl::StatusOr<int> local_rank = variables.Number("SLURM_LOCALID", 0, kMostRanks - 1, kSlurmVariables);
  if (!local_rank.ok()) return local_rank.status();
  const absl::StatusOr<int> local_size = SlurmLocalSize(variables);
  if (!local_size.ok()) return local_size.status();
  read.rank = *rank;
  read.size = *size;
  read.local_rank = *local_rank;
  read.local_size = *local_size;
  const NumberNames names = {"SLURM_PROCID", size_name, "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE at SLURM_NODEID"};
  if (absl::Status status = CheckNumbers(names, read); !status.ok()) return status;
  absl::StatusOr<std::string> address = SlurmAddress(variables, read.local_size == read.size);
  if (!address.ok()) return address.status();
  read.address = *std::move(address);
  std::optional<std::string> job = variables.Find("SLURM_JOB_ID");
  if (job.has_value()) job = absl::StrCat(*job, ".", variables.Text("SLURM_STEP_ID"));
  const absl::StatusOr<int> port = PortOfJob(variables, job, "SLURM_JOB_ID");
  if (!port.ok()) return port.status();
  read.port = *port;
  return read;
}

}  // namespace

absl::StatusOr<LaunchEnvironment> ReadLaunchEnvironment(const std::function<const char*(const char*)>& get) {
  const Variables variables(get);
  if (variables.Has("RANK") || variables.Has("WORLD_SIZE")) return ReadTorchrun(variables);
  if (variables.Has("OMPI_COMM_WORLD_RANK") || variables.Has("OMPI_COMM_WORLD_SIZE")) return ReadOpenMpi(variables);
  if (InSlurmStep(variables)) return ReadSlurm(variables);
  return LaunchEnvironment{};
}

}  // namespace mpc::runtime
