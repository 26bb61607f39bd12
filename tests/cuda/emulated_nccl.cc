#include "tests/cuda/emulated_nccl.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/runtime/collective_checks.h"

namespace mpc::emulation {
namespace {

/// Settled says no as often after each call.
constexpr int kPollsOfACall = 2;

runtime::NcclId IdOfNetwork() {
  runtime::NcclId id{};
  std::strcpy(id.data(), "the network's");
  return id;
}

}  // namespace

std::vector<std::string> NcclNetwork::Problems() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return problems_;
}

std::size_t EmulatedNccl::calls(const std::string& call) const {
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

void EmulatedNccl::Misuse(const std::string& text) {
  network_.problems_.push_back(absl::StrCat("rank ", rank_, ": ", text));
}

absl::Status EmulatedNccl::Enter(const std::string& call, const std::string& details) {
  ++calls_[call];
  if (call != "MakeId" && call != "Settled") log_.push_back(details.empty() ? call : absl::StrCat(call, " ", details));
  if (polls_to_settle_ > 0 && call != "Settled" && call != "Abort") {
    const std::lock_guard<std::mutex> lock(network_.mutex_);
    Misuse(absl::StrCat(call, " before the last call was settled"));
  }
  const auto found = failures_.find(call);
  if (found == failures_.end() || --found->second.first > 0) return absl::OkStatus();
  const absl::Status error = found->second.second;
  failures_.erase(found);
  return error;
}

absl::StatusOr<runtime::NcclId> EmulatedNccl::MakeId() {
  if (absl::Status status = Enter("MakeId"); !status.ok()) return status;
  return IdOfNetwork();
}

absl::StatusOr<runtime::NcclApi::Communicator> EmulatedNccl::Create(const runtime::NcclId& id, int rank, int size) {
  if (absl::Status status = Enter("Create"); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(network_.mutex_);
  if (id != IdOfNetwork() || rank != rank_ || size != network_.size_) Misuse("another id, rank or size");
  network_.joined_.insert(rank);
  auto state = std::make_shared<State>();
  polls_to_settle_ = kPollsOfACall;
  communicators_[state.get()] = state;
  return static_cast<Communicator>(state.get());
}

absl::StatusOr<bool> EmulatedNccl::Settled(Communicator communicator) {
  if (absl::Status status = Enter("Settled"); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(network_.mutex_);
  if (!communicators_.contains(communicator)) Misuse("Settled of what is no communicator");
  if (static_cast<int>(network_.joined_.size()) < network_.size_) return false;
  return polls_to_settle_ == 0 || --polls_to_settle_ == 0;
}

absl::Status EmulatedNccl::Abort(Communicator communicator) {
  const absl::Status status = Enter("Abort");
  const std::lock_guard<std::mutex> lock(network_.mutex_);
  const auto found = communicators_.find(communicator);
  if (found == communicators_.end()) {
    Misuse("Abort of what is no communicator");
    return status;
  }
  found->second->aborted = true;
  communicators_.erase(found);
  polls_to_settle_ = 0;
  return status;
}

absl::Status EmulatedNccl::BeginGroup() {
  if (absl::Status status = Enter("BeginGroup"); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(network_.mutex_);
  if (in_group_) Misuse("a group inside a group");
  in_group_ = true;
  return absl::OkStatus();
}

absl::Status EmulatedNccl::EndGroup() {
  const absl::Status status = Enter("EndGroup");
  auto exchange = std::make_shared<Exchange>();
  {
    const std::lock_guard<std::mutex> lock(network_.mutex_);
    if (!in_group_) Misuse("the end of a group that was not begun");
    in_group_ = false;
    exchange->calls = std::move(group_);
    exchange->state = group_state_;
    group_.clear();
  }
  if (!status.ok() || exchange->calls.empty()) return status;
  polls_to_settle_ = kPollsOfACall;
  return gpu_.EnqueueWork(
      group_stream_, {[this, exchange] { return Finish(*exchange); }, [this, exchange] { return IsReady(*exchange); }});
}

absl::Status EmulatedNccl::AddCall(const Call& call, Communicator communicator, runtime::CudaApi::Stream stream) {
  const std::lock_guard<std::mutex> lock(network_.mutex_);
  const auto found = communicators_.find(communicator);
  if (found == communicators_.end() || !in_group_) {
    Misuse("a call outside a group, or on what is no communicator");
    return absl::InternalError("invalid usage");
  }
  if (!group_.empty() && group_stream_ != stream) Misuse("a group on two streams");
  group_state_ = found->second;
  group_stream_ = stream;
  group_.push_back(call);
  return absl::OkStatus();
}

absl::Status EmulatedNccl::Send(const void* data, std::size_t bytes, int peer, Communicator communicator,
                                runtime::CudaApi::Stream stream) {
  if (absl::Status status = Enter("Send", absl::StrCat(bytes)); !status.ok()) return status;
  if (absl::Status status = gpu_.CheckDeviceMemory(data, bytes); !status.ok()) return status;
  return AddCall({Call::Kind::kSend, data, nullptr, bytes, peer}, communicator, stream);
}

absl::Status EmulatedNccl::Receive(void* data, std::size_t bytes, int peer, Communicator communicator,
                                   runtime::CudaApi::Stream stream) {
  if (absl::Status status = Enter("Receive", absl::StrCat(bytes)); !status.ok()) return status;
  if (absl::Status status = gpu_.CheckDeviceMemory(data, bytes); !status.ok()) return status;
  return AddCall({Call::Kind::kReceive, nullptr, data, bytes, peer}, communicator, stream);
}

absl::Status EmulatedNccl::AllGather(const void* input, void* output, std::size_t bytes, Communicator communicator,
                                     runtime::CudaApi::Stream stream) {
  if (absl::Status status = Enter("AllGather", absl::StrCat(bytes)); !status.ok()) return status;
  if (absl::Status status = gpu_.CheckDeviceMemory(input, bytes); !status.ok()) return status;
  const std::size_t all = bytes * static_cast<std::size_t>(network_.size_);
  if (absl::Status status = gpu_.CheckDeviceMemory(output, all); !status.ok()) return status;
  return AddCall({Call::Kind::kGather, input, output, bytes}, communicator, stream);
}

absl::Status EmulatedNccl::AllReduceSum(const void* input, void* output, std::size_t elements, DType dtype,
                                        Communicator communicator, runtime::CudaApi::Stream stream) {
  if (absl::Status status = Enter("AllReduceSum", absl::StrCat(elements)); !status.ok()) return status;
  const std::size_t bytes = elements * ElementSize(dtype);
  for (const void* memory : {input, static_cast<const void*>(output)}) {
    if (absl::Status status = gpu_.CheckDeviceMemory(memory, bytes); !status.ok()) return status;
  }
  return AddCall({Call::Kind::kSum, input, output, bytes, 0, dtype}, communicator, stream);
}

absl::Status EmulatedNccl::AllReduceMax(const void* input, void* output, std::size_t elements,
                                        Communicator communicator, runtime::CudaApi::Stream stream) {
  if (absl::Status status = Enter("AllReduceMax", absl::StrCat(elements)); !status.ok()) return status;
  const std::size_t bytes = elements * sizeof(std::int32_t);
  for (const void* memory : {input, static_cast<const void*>(output)}) {
    if (absl::Status status = gpu_.CheckDeviceMemory(memory, bytes); !status.ok()) return status;
  }
  return AddCall({Call::Kind::kLargest, input, output, bytes}, communicator, stream);
}

void EmulatedNccl::Begin(Call& call) {
  const auto* const first = static_cast<const std::byte*>(call.input);
  switch (call.kind) {
    case Call::Kind::kSend: {
      NcclNetwork::Wire& wire = network_.wires_[{rank_, call.peer}];
      wire.messages.emplace_back(first, first + call.bytes);
      call.number = ++wire.sent;
      return;
    }
    case Call::Kind::kReceive:
      call.number = ++network_.wires_[{call.peer, rank_}].wanted;
      return;
    case Call::Kind::kGather:
    case Call::Kind::kLargest:
    case Call::Kind::kSum: {
      call.number = ++collectives_begun_;
      NcclNetwork::Collective& collective = network_.collectives_[call.number];
      const char* const what = call.kind == Call::Kind::kGather ? "a gather of "
                               : call.kind == Call::Kind::kSum  ? "a sum of "
                                                                : "maxima of ";
      const std::string text = absl::StrCat(what, call.bytes, " bytes");
      if (collective.call.empty()) collective.call = text;
      if (collective.call != text) Misuse(absl::StrCat(text, " where another rank has ", collective.call));
      collective.given[rank_] = Bytes(first, first + call.bytes);
      return;
    }
  }
}

bool EmulatedNccl::IsThere(const Call& call) const {
  switch (call.kind) {
    case Call::Kind::kSend:
      return network_.wires_[{rank_, call.peer}].wanted >= call.number;
    case Call::Kind::kReceive:
      return network_.wires_[{call.peer, rank_}].sent >= call.number;
    case Call::Kind::kGather:
    case Call::Kind::kLargest:
    case Call::Kind::kSum:
      return static_cast<int>(network_.collectives_.at(call.number).given.size()) == network_.size_;
  }
  return false;
}

bool EmulatedNccl::IsReady(Exchange& exchange) {
  const std::lock_guard<std::mutex> lock(network_.mutex_);
  if (exchange.state->aborted) return true;
  if (!exchange.begun) std::ranges::for_each(exchange.calls, [this](Call& call) { Begin(call); });
  exchange.begun = true;
  return std::ranges::all_of(exchange.calls, [this](const Call& call) { return IsThere(call); });
}

EmulatedNccl::Bytes EmulatedNccl::SumOf(const NcclNetwork::Collective& collective, DType dtype) {
  Bytes sum;
  for (const auto& [rank, bytes] : collective.given) {
    if (rank == 0) sum = bytes;
    if (rank > 0 && bytes.size() == sum.size()) sum = test::PlainReduction(dtype, Reduction::kSum, {sum, bytes});
  }
  return sum;
}

void EmulatedNccl::FinishCollective(const Call& call) {
  NcclNetwork::Collective& collective = network_.collectives_.at(call.number);
  auto* const output = static_cast<std::byte*>(call.output);
  if (call.kind == Call::Kind::kSum) {
    const Bytes sum = SumOf(collective, call.dtype);
    if (sum.size() == call.bytes) std::memcpy(output, sum.data(), sum.size());
  }
  for (const auto& [rank, bytes] : collective.given) {
    if (call.kind == Call::Kind::kSum || bytes.size() != call.bytes) continue;  // other sizes were reported
    if (call.kind == Call::Kind::kGather) {
      std::memcpy(output + static_cast<std::size_t>(rank) * call.bytes, bytes.data(), call.bytes);
      continue;
    }
    for (std::size_t at = 0; at < call.bytes; at += sizeof(std::int32_t)) {
      std::int32_t largest, given;
      std::memcpy(&largest, output + at, sizeof largest);
      std::memcpy(&given, bytes.data() + at, sizeof given);
      largest = rank == 0 ? given : std::max(largest, given);
      std::memcpy(output + at, &largest, sizeof largest);
    }
  }
  if (++collective.readers == network_.size_) network_.collectives_.erase(call.number);
}

absl::Status EmulatedNccl::Finish(Exchange& exchange) {
  const std::lock_guard<std::mutex> lock(network_.mutex_);
  exchange.begun = false;  // a graph may run it again
  if (exchange.state->aborted) return absl::OkStatus();
  for (const Call& call : exchange.calls) {
    if (call.kind == Call::Kind::kSend) continue;
    if (call.kind != Call::Kind::kReceive) {
      FinishCollective(call);
      continue;
    }
    std::deque<Bytes>& messages = network_.wires_[{call.peer, rank_}].messages;
    if (messages.front().size() != call.bytes) {
      Misuse(
          absl::StrCat("receives ", call.bytes, " bytes where rank ", call.peer, " sends ", messages.front().size()));
    } else {
      std::memcpy(call.output, messages.front().data(), call.bytes);
    }
    messages.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace mpc::emulation
