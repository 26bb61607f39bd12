#include "frontend/distributed/join_group.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/loop_processors.h"
#include "kernels/usable_processors.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/cuda/backend_library.h"
#include "runtime/distributed/mpi/mpi_library.h"
#include "runtime/distributed/rank_processors.h"
#include "runtime/distributed/shared_communicator.h"
#include "runtime/distributed/socket.h"
#include "runtime/distributed/store_message.h"

namespace mpc::distributed::internal {
namespace {

using runtime::LaunchEnvironment;
using runtime::ProcessGroup;
using runtime::RankInfo;

constexpr int kMostPort = 65535;
/// Between two heartbeats.
constexpr std::chrono::milliseconds kLongestInterval{1000};
constexpr std::chrono::milliseconds kShortestLossLimit{1000};
/// Of `timeout` and `loss_limit`.
constexpr std::chrono::milliseconds kLongestLimit = runtime::kLongestWait;

absl::Status Refused(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("distributed::Init: ", what));
}

/// Takes `text`, "host:port" or "[host]:port", apart.
absl::Status SetAddress(const std::string& text, LaunchEnvironment& place) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  int port = 0;
  const bool valid = !host.empty() && absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 && port <= kMostPort;
  if (!valid)
    return Refused(absl::StrCat("address is '", text, "'; accepted is host:port with a port from 1 to 65535"));
  place.address = std::move(host);
  place.port = port;
  return absl::OkStatus();
}

absl::StatusOr<LaunchEnvironment> PlaceThatOptionsSay(const Options& options) {
  if (!options.rank || !options.size) return Refused("rank and size must be given together");
  if (*options.size < 1 || *options.size > runtime::kMostRanks) {
    return Refused(absl::StrCat("size is ", *options.size, "; accepted are 1 to ", runtime::kMostRanks));
  }
  if (*options.rank < 0 || *options.rank >= *options.size) {
    return Refused(absl::StrCat("rank is ", *options.rank, "; accepted are 0 to ", *options.size - 1));
  }
  if (*options.size > 1 && options.address.empty()) {
    return Refused(absl::StrCat("size is ", *options.size, ", and several processes need the address of rank 0"));
  }
  LaunchEnvironment place;
  place.rank = *options.rank;
  place.size = *options.size;
  return place;
}

absl::string_view Name(Transport transport) {
  switch (transport) {
    case Transport::kAuto:
      return "auto";
    case Transport::kShared:
      return "shared";
    case Transport::kMpi:
      return "mpi";
    case Transport::kNccl:
      return "nccl";
  }
  return "unknown";
}

/// What carries the hosts' numbers. A group of one machine shares a mapping, and other groups need MPI.
absl::StatusOr<Transport> Choose(Transport asked, const ProcessGroup& control) {
  const RankInfo& first = control.ranks().front();
  const bool one_machine = first.local_size == control.size();
  if (asked == Transport::kAuto || asked == Transport::kNccl) return one_machine ? Transport::kShared : Transport::kMpi;
  if (asked == Transport::kMpi || one_machine) return asked;
  const auto other = std::ranges::find_if(
      control.ranks(), [&](const RankInfo& rank) { return rank.host != first.host || rank.machine != first.machine; });
  return Refused(absl::StrCat("transport shared is for one machine, but ", RankText(first), " and ", RankText(*other),
                              " are on two; accepted is mpi"));
}

/// Tells the heartbeats where a call waits, and ends its wait where they have heard of a loss.
WaitHook HeartbeatsHook(const std::shared_ptr<ProcessGroup>& control) {
  return [weak = std::weak_ptr<ProcessGroup>(control)](std::string_view what) {
    const std::shared_ptr<ProcessGroup> group = weak.lock();
    if (group == nullptr) return absl::OkStatus();
    group->SetActivity(what);
    const absl::Status failure = group->failure();
    if (failure.ok()) return failure;
    return absl::Status(failure.code(), absl::StrCat(failure.message(), "; rank ", group->rank(), " waited in ",
                                                     absl::string_view(what.data(), what.size())));
  };
}

/// Whether ranks may take turns on a processor. Where OpenMP binds threads, ranks that have a processor in common may
/// have their first threads on the same one.
bool ShareProcessors(const ProcessGroup& control) {
  if (runtime::RanksShareProcessors(control.ranks())) return true;
  return cpu::OpenMpBindsThreads() && runtime::SharesProcessors(control.ranks(), control.rank());
}

absl::StatusOr<std::unique_ptr<Communicator>> Connect(Transport transport, const Options& options,
                                                      const std::shared_ptr<ProcessGroup>& control) {
  if (transport == Transport::kMpi) {
    return OpenMpiCommunicator(
        {.timeout = options.timeout, .size = control->size(), .on_wait = HeartbeatsHook(control)});
  }
  return CreateSharedCommunicator({.name = absl::StrCat("mpc-", absl::Hex(control->job_nonce(), absl::kZeroPad16)),
                                   .rank = control->rank(),
                                   .size = control->size(),
                                   .timeout = options.timeout,
                                   .on_wait = HeartbeatsHook(control),
                                   .share_processors = ShareProcessors(*control)});
}

/// Starts heartbeats. A silent rank is noticed in half of the limit, and the others may run for the other half.
absl::Status WatchHeartbeats(const Options& options, JoinedGroup& group) {
  const std::chrono::milliseconds half = options.loss_limit / 2;
  group.deadline = std::make_unique<LossDeadline>(half);
  return group.control->Watch({.interval = std::min(kLongestInterval, half / 4), .limit = half},
                              group.deadline->Watcher());
}

}  // namespace

int ThreadsOfOneProcess() { return cpu::UsableLoopProcessors(); }

absl::StatusOr<LaunchEnvironment> PlaceOf(const Options& options, const std::function<const char*(const char*)>& get) {
  if (options.timeout.count() <= 0 || options.timeout > kLongestLimit) {
    return Refused(absl::StrCat("timeout is ", options.timeout.count(), " ms; accepted is above 0, up to ",
                                kLongestLimit.count(), " ms, which are 30 days"));
  }
  if (options.loss_limit < kShortestLossLimit || options.loss_limit > kLongestLimit) {
    return Refused(absl::StrCat("loss_limit is ", options.loss_limit.count(), " ms; accepted is from ",
                                kShortestLossLimit.count(), " ms up to ", kLongestLimit.count(),
                                " ms, which are 30 days"));
  }
  const bool told = options.rank || options.size;
  absl::StatusOr<LaunchEnvironment> place = told ? PlaceThatOptionsSay(options) : runtime::ReadLaunchEnvironment(get);
  if (!place.ok() || options.address.empty()) return place;
  if (absl::Status status = SetAddress(options.address, *place); !status.ok()) return status;
  // Nobody has said how many ranks are on this machine. Loopback reaches those of it alone.
  if (told && runtime::IsLoopback(place->address)) {
    place->local_rank = place->rank;
    place->local_size = place->size;
  }
  return place;
}

absl::StatusOr<JoinedGroup> JoinGroup(const Options& options, const std::function<const char*(const char*)>& get) {
  absl::StatusOr<LaunchEnvironment> place = PlaceOf(options, get);
  if (!place.ok()) return place.status();
  JoinedGroup group{.place = *std::move(place),
                    .control = nullptr,
                    .deadline = nullptr,
                    .communicator = nullptr,
                    .any_order = nullptr};
  if (group.place.size == 1) {
    group.threads = ThreadsOfOneProcess();
    return group;
  }
  const std::string transport_asked(Name(options.transport));
  absl::StatusOr<std::unique_ptr<ProcessGroup>> control =
      ProcessGroup::Join({.environment = group.place,
                          .processors = cpu::LoopProcessors(),
                          .quota = ProcessorQuota(),
                          .hashes = {{"transport", transport_asked}},
                          .time_limit = options.timeout});
  if (!control.ok()) return control.status();
  group.control = *std::move(control);
  const RankInfo& own = group.control->ranks()[static_cast<std::size_t>(group.place.rank)];
  group.place.local_rank = own.local_rank;
  group.place.local_size = own.local_size;
  group.threads = runtime::ThreadsOfEachRank(group.control->ranks());
  absl::StatusOr<Transport> transport = Choose(options.transport, *group.control);
  if (!transport.ok()) {
    group.control->Leave();
    return transport.status();
  }
  if (absl::Status status = WatchHeartbeats(options, group); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Communicator>> communicator = Connect(*transport, options, group.control);
  if (!communicator.ok()) {
    group.control->ReportFailure(std::string(communicator.status().message())).IgnoreError();
    return communicator.status();
  }
  group.communicator = *std::move(communicator);
  if (options.transport != Transport::kNccl) return group;
  if (absl::Status status = runtime::JoinGpus(group.communicator); !status.ok()) {
    group.control->ReportFailure(std::string(status.message())).IgnoreError();
    return status;
  }
  return group;
}

}  // namespace mpc::distributed::internal
