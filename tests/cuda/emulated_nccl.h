// NCCL between emulated GPUs of one process. Each rank has a table of its own, and all share a network:
//  * every call is counted and written to a log, and the n-th of a kind can be made to fail;
//  * a send waits for its receive, as NCCL's may: an order of calls that could stand still does so here;
//  * communicators are non-blocking, and a call before the last one is settled is reported;
//  * memory that is not the device's, sizes that differ between ranks and what nobody gave back are reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/nccl_api.h"
#include "tests/cuda/emulated_api.h"

namespace mpc::emulation {

/// What the ranks of one communicator exchange.
class NcclNetwork {
 public:
  explicit NcclNetwork(int size) : size_(size) {}

  /// Misuse so far. Empty is what tests want.
  std::vector<std::string> Problems() const;

 private:
  friend class EmulatedNccl;
  using Bytes = std::vector<std::byte>;
  /// From one rank to another.
  struct Wire {
    std::deque<Bytes> messages;
    std::uint64_t sent = 0;
    std::uint64_t wanted = 0;  ///< receives that were begun
  };
  /// One call of all ranks.
  struct Collective {
    std::string call;
    std::map<int, Bytes> given;
    int readers = 0;
  };

  const int size_;
  mutable std::mutex mutex_;
  std::set<int> joined_;  ///< guarded by mutex_, as all below
  std::map<std::pair<int, int>, Wire> wires_;
  std::map<std::uint64_t, Collective> collectives_;
  std::vector<std::string> problems_;
};

/// The table of one rank, for one thread.
class EmulatedNccl : public runtime::NcclApi {
 public:
  /// Both outlive this.
  EmulatedNccl(NcclNetwork& network, EmulatedApi& gpu, int rank, std::string version = "2.28.9")
      : network_(network), gpu_(gpu), rank_(rank), version_(std::move(version)) {}

  std::size_t calls(const std::string& call) const;
  /// Every call but MakeId and Settled, with sizes and without peers: "Send 512".
  const std::vector<std::string>& log() const { return log_; }
  /// Makes the `n`-th call of `call` from now on (1: the next) fail once with `error`.
  void FailCall(const std::string& call, std::size_t n, absl::Status error) { failures_[call] = {n, std::move(error)}; }
  /// Communicators that nobody gave back.
  std::size_t alive() const { return communicators_.size(); }

  std::string Version() override { return version_; }
  absl::StatusOr<runtime::NcclId> MakeId() override;
  absl::StatusOr<Communicator> Create(const runtime::NcclId& id, int rank, int size) override;
  absl::StatusOr<bool> Settled(Communicator communicator) override;
  absl::Status Abort(Communicator communicator) override;
  absl::Status BeginGroup() override;
  absl::Status EndGroup() override;
  absl::Status Send(const void* data, std::size_t bytes, int peer, Communicator communicator,
                    runtime::CudaApi::Stream stream) override;
  absl::Status Receive(void* data, std::size_t bytes, int peer, Communicator communicator,
                       runtime::CudaApi::Stream stream) override;
  absl::Status AllGather(const void* input, void* output, std::size_t bytes, Communicator communicator,
                         runtime::CudaApi::Stream stream) override;
  absl::Status AllReduceSum(const void* input, void* output, std::size_t elements, DType dtype,
                            Communicator communicator, runtime::CudaApi::Stream stream) override;
  absl::Status AllReduceMax(const void* input, void* output, std::size_t elements, Communicator communicator,
                            runtime::CudaApi::Stream stream) override;

 private:
  using Bytes = NcclNetwork::Bytes;
  struct State {
    bool aborted = false;  ///< guarded by the network's mutex
  };
  /// One call inside a group.
  struct Call {
    enum class Kind { kSend, kReceive, kGather, kLargest, kSum } kind;
    const void* input = nullptr;
    void* output = nullptr;
    std::size_t bytes = 0;  ///< of the input, or of what is received
    int peer = 0;
    DType dtype = DType::kI32;  ///< of a sum
    std::uint64_t number = 0;   ///< among those of its kind and peer; set when it begins
  };
  /// The calls of a group, as work of the device.
  struct Exchange {
    std::vector<Call> calls;
    std::shared_ptr<State> state;
    bool begun = false;
  };

  absl::Status Enter(const std::string& call, const std::string& details = "");
  absl::Status AddCall(const Call& call, Communicator communicator, runtime::CudaApi::Stream stream);
  /// Asks whether all that `exchange` waits for is there.
  bool IsReady(Exchange& exchange);
  void Begin(Call& call);
  bool IsThere(const Call& call) const;
  absl::Status Finish(Exchange& exchange);
  void FinishCollective(const Call& call);
  /// Adds in the order of ranks, which is not that of the tree.
  static Bytes SumOf(const NcclNetwork::Collective& collective, DType dtype);
  void Misuse(const std::string& text);

  NcclNetwork& network_;
  EmulatedApi& gpu_;
  const int rank_;
  const std::string version_;
  std::map<std::string, std::size_t> calls_;
  std::map<std::string, std::pair<std::size_t, absl::Status>> failures_;
  std::vector<std::string> log_;
  std::map<void*, std::shared_ptr<State>> communicators_;
  bool in_group_ = false;
  int polls_to_settle_ = 0;
  std::uint64_t collectives_begun_ = 0;
  std::vector<Call> group_;
  std::shared_ptr<State> group_state_;
  runtime::CudaApi::Stream group_stream_ = nullptr;
};

}  // namespace mpc::emulation
