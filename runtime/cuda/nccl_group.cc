#include "runtime/cuda/nccl_group.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/collectives.h"
#include "runtime/cuda/stream_queue.h"
#include "runtime/distributed/reduction_message.h"

namespace mpc::runtime {
namespace {

using distributed::BlockRange;
using distributed::TreeRound;

constexpr char kNcclTransport[] = "transport \"nccl\": ";
/// Messages up to this are exchanged whole. That takes half the rounds, and more bytes than halving sends.
constexpr std::size_t kWholeSumBytes = std::size_t{32} << 10;
constexpr std::size_t kPartUnit = distributed::kPartAlignment;
constexpr auto kLookInterval = std::chrono::milliseconds(50);
/// A process that has left may have done its part of a step that this one still computes.
constexpr auto kLossGrace = std::chrono::seconds(2);
constexpr int kPollYields = 200;
constexpr auto kPollSleep = std::chrono::microseconds(50);

std::size_t PaddedPart(std::size_t bytes) { return (bytes + kPartUnit - 1) / kPartUnit * kPartUnit; }

/// What a rank tells the others before NCCL is called.
struct Introduction {
  char error[512] = "";
  char version[32] = "";
  char gpu[128] = "";
  NcclId id{};
};

template <std::size_t kSize>
void CopyIntroductionText(absl::string_view text, char (&to)[kSize]) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

absl::Status CheckIntroductions(const std::vector<Introduction>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].error[0] == '\0') continue;
    return absl::UnavailableError(absl::StrCat(kNcclTransport, "rank ", rank, " cannot take part: ", all[rank].error));
  }
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (std::strcmp(all[rank].version, all[0].version) != 0) {
      return absl::FailedPreconditionError(absl::StrCat(kNcclTransport, "rank 0 has NCCL ", all[0].version,
                                                        ", and rank ", rank, " has NCCL ", all[rank].version));
    }
    for (std::size_t other = 0; other < rank; ++other) {
      if (std::strcmp(all[rank].gpu, all[other].gpu) != 0) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          kNcclTransport, "ranks ", other, " and ", rank, " have the same GPU, ", all[rank].gpu,
          "; each process needs one of its own, which its launcher's local rank or CUDA_VISIBLE_DEVICES chooses"));
    }
  }
  return absl::OkStatus();
}

bool IsSentWhole(std::size_t bytes) { return bytes <= kWholeSumBytes; }

}  // namespace

std::size_t SumWorkspace(absl::Span<const std::size_t> bytes, int size) {
  if (size == 1) return 0;
  std::size_t total = 0, whole = 0, half = 0;
  for (const std::size_t part : bytes) {
    const std::size_t units = PaddedPart(part) / kPartUnit;
    total += part;
    whole += units * kPartUnit;
    half += (units + 1) / 2 * kPartUnit;
  }
  return IsSentWhole(total) ? whole : half;
}

NcclGroup::NcclGroup(const Place& place, const std::shared_ptr<Communicator>& processes)
    : cuda_(*place.cuda),
      stream_(place.stream),
      processes_(processes),
      rank_(processes->rank()),
      size_(processes->size()),
      adds_in_any_order_(processes->adds_in_any_order()),
      time_limit_(processes->time_limit()),
      halving_(distributed::HalvingRounds(rank_, size_)),
      gathering_(distributed::GatheringRounds(rank_, size_)) {}

absl::StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Open(const Place& place,
                                                           const std::shared_ptr<Communicator>& processes) {
  if (!std::has_single_bit(static_cast<unsigned>(processes->size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat(kNcclTransport, "a group has a power of two of ranks, got ", processes->size()));
  }
  std::unique_ptr<NcclGroup> group(new NcclGroup(place, processes));
  if (absl::Status status = group->Agree(*processes, place); !status.ok()) return status;
  absl::Status status = Allocate(group->cuda_, sizeof(cuda::DevicePlace), group->place_);
  if (!status.ok()) return status;
  std::memset(group->place_.get(), 0, sizeof(cuda::DevicePlace));
  status = group->Create();
  if (status.ok()) status = group->WalkAllPaths();
  if (!status.ok()) return group->Fail(status);
  group->is_open_ = true;
  return group;
}

NcclGroup::~NcclGroup() {
  if (communicator_ != nullptr) nccl_->Abort(communicator_).IgnoreError();
}

absl::Status NcclGroup::Agree(Communicator& processes, const Place& place) {
  Introduction own;
  CopyIntroductionText(place.gpu, own.gpu);
  if (place.nccl.ok()) {
    nccl_ = *place.nccl;
    CopyIntroductionText(nccl_->Version(), own.version);
  } else {
    CopyIntroductionText(place.nccl.status().message(), own.error);
  }
  if (rank_ == 0 && nccl_ != nullptr) {
    const absl::StatusOr<NcclId> id = nccl_->MakeId();
    if (id.ok()) {
      own.id = *id;
    } else {
      CopyIntroductionText(id.status().message(), own.error);
    }
  }
  std::vector<Introduction> all(static_cast<std::size_t>(size_));
  if (absl::Status status = processes.AllGather(&own, all.data(), sizeof own); !status.ok()) return status;
  id_ = all[0].id;
  return CheckIntroductions(all);
}

absl::Status NcclGroup::Create() {
  const absl::StatusOr<NcclApi::Communicator> created = nccl_->Create(id_, rank_, size_);
  if (!created.ok()) return created.status();
  communicator_ = *created;
  return Settle();
}

absl::Status NcclGroup::WalkAllPaths() {
  // The offsets of numbers in one allocation.
  constexpr std::size_t kOwn = 0, kLargest = 256, kSummand = 512, kSum = 768, kScratch = 1024, kGathered = 1280;
  constexpr float kOne = 1;
  const std::size_t bytes = kGathered + static_cast<std::size_t>(size_) * sizeof(std::int32_t);
  DeviceMemory device;
  PinnedMemory host;
  OwnedEvent done;
  absl::Status status = Allocate(cuda_, bytes, device);
  if (status.ok()) status = Allocate(cuda_, bytes, host);
  if (status.ok()) status = Keep(cuda_, cuda_.CreateEvent(false), done);
  if (!status.ok()) return status;
  const auto at = [&](std::size_t offset) {
    return reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(device.get()) + offset);
  };
  const DevicePart gathered{at(kOwn), at(kGathered), 1, DType::kI32};
  const DevicePart largest{at(kOwn), at(kLargest), 1, DType::kI32};
  const DevicePart sum{at(kSummand), at(kSum), 1, DType::kF32};
  StreamQueue queue(cuda_, stream_);
  status = queue.Fill(device.get(), 0, bytes);
  if (status.ok()) status = cuda::EnqueueNumber(queue, at(kOwn), rank_);
  if (status.ok()) status = cuda::EnqueueNumber(queue, at(kSummand), std::bit_cast<std::int32_t>(kOne));
  if (status.ok()) status = EnqueueGathers({&gathered, 1}, queue);
  if (status.ok()) status = EnqueueLargest({&largest, 1}, queue);
  if (status.ok()) status = EnqueueSums({&sum, 1}, at(kScratch), queue);
  if (status.ok()) status = cuda_.Copy(host.get(), device.get(), bytes, CudaCopy::kDeviceToHost, stream_);
  if (status.ok()) status = cuda_.RecordEvent(done.get(), stream_);
  if (status.ok()) status = WaitUntil([&] { return cuda_.EventDone(done.get()); });
  if (!status.ok()) {
    Fail(status);  // what is on the stream uses memory that is given back now
    return status_;
  }
  const auto read = [&](std::size_t offset) {
    std::int32_t number;
    std::memcpy(&number, static_cast<const std::byte*>(host.get()) + offset, sizeof number);
    return number;
  };
  bool right = read(kLargest) == size_ - 1 && std::bit_cast<float>(read(kSum)) == static_cast<float>(size_);
  for (int rank = 0; rank < size_; ++rank) {
    right = right && read(kGathered + static_cast<std::size_t>(rank) * sizeof(std::int32_t)) == rank;
  }
  return right ? absl::OkStatus() : absl::InternalError("a first exchange of all GPUs has given wrong numbers");
}

absl::Status NcclGroup::EnqueueSums(absl::Span<const DevicePart> parts, void* workspace, cuda::LaunchQueue& queue) {
  if (!status_.ok()) return status_;
  if (size_ == 1) {
    absl::Status status;
    for (const DevicePart& part : parts) {
      if (part.input == part.output || part.elements == 0 || !status.ok()) continue;
      status = queue.Copy(part.output, part.input, part.bytes());
    }
    return status;
  }
  std::size_t total = 0;
  for (const DevicePart& part : parts) total += part.bytes();
  if (total == 0) return absl::OkStatus();
  if (adds_in_any_order_) return EnqueueSumsOfNccl(parts, queue);
  const bool whole = IsSentWhole(total);
  for (TreeRound round : halving_) {
    if (whole) round.sent = round.received = {0, size_};
    const bool is_first = round.peer == halving_.front().peer;
    if (absl::Status status = ExchangeRanges(round, is_first, parts, workspace, queue); !status.ok()) return status;
  }
  if (whole) return absl::OkStatus();
  for (const TreeRound& round : gathering_) {
    if (absl::Status status = ExchangeRanges(round, false, parts, nullptr, queue); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status NcclGroup::EnqueueSumsOfNccl(absl::Span<const DevicePart> parts, cuda::LaunchQueue& queue) {
  return InGroup([&] {
    absl::Status status;
    for (const DevicePart& part : parts) {
      if (part.elements == 0 || !status.ok()) continue;
      status = nccl_->AllReduceSum(part.input, part.output, part.elements, part.dtype, communicator_, queue.stream());
    }
    return status;
  });
}

absl::Status NcclGroup::ExchangeRanges(const TreeRound& round, bool is_first, absl::Span<const DevicePart> parts,
                                       void* workspace, cuda::LaunchQueue& queue) {
  struct Range {
    std::size_t begin, bytes;
  };
  const auto range = [this](const DevicePart& part, BlockRange blocks) {
    const auto first = static_cast<std::size_t>(blocks.first), count = static_cast<std::size_t>(blocks.count);
    const auto size = static_cast<std::size_t>(size_);
    const std::size_t begin = distributed::BlockBegin(part.bytes(), first, size);
    return Range{begin, distributed::BlockBegin(part.bytes(), first + count, size) - begin};
  };
  const auto source = [&](const DevicePart& part) {
    return static_cast<const std::byte*>(is_first ? part.input : part.output);
  };
  const auto for_each = [&](const auto& body) {
    std::byte* scratch = static_cast<std::byte*>(workspace);
    for (const DevicePart& part : parts) {
      const Range received = range(part, round.received);
      std::byte* const own = static_cast<std::byte*>(part.output) + received.begin;
      if (absl::Status status = body(part, received, scratch != nullptr ? scratch : own); !status.ok()) return status;
      if (scratch != nullptr) scratch += PaddedPart(received.bytes);
    }
    return absl::OkStatus();
  };
  absl::Status status = InGroup([&] {
    return for_each([&](const DevicePart& part, Range received, std::byte* to) {
      const Range sent = range(part, round.sent);
      absl::Status called;
      if (sent.bytes > 0) {
        called = nccl_->Send(source(part) + sent.begin, sent.bytes, round.peer, communicator_, queue.stream());
      }
      if (called.ok() && received.bytes > 0) {
        called = nccl_->Receive(to, received.bytes, round.peer, communicator_, queue.stream());
      }
      return called;
    });
  });
  if (!status.ok() || workspace == nullptr) return status;
  return for_each([&](const DevicePart& part, Range received, std::byte* other) {
    if (received.bytes == 0) return absl::OkStatus();
    const std::byte* const own = source(part) + received.begin;
    return cuda::EnqueueSum(queue, part.dtype, round.is_upper ? other : own, round.is_upper ? own : other,
                            static_cast<std::byte*>(part.output) + received.begin,
                            static_cast<std::int64_t>(received.bytes / ElementSize(part.dtype)));
  });
}

absl::Status NcclGroup::EnqueueGathers(absl::Span<const DevicePart> parts, cuda::LaunchQueue& queue) {
  if (!status_.ok()) return status_;
  return InGroup([&] {
    absl::Status status;
    for (const DevicePart& part : parts) {
      if (part.elements == 0 || !status.ok()) continue;
      status = nccl_->AllGather(part.input, part.output, part.bytes(), communicator_, queue.stream());
    }
    return status;
  });
}

absl::Status NcclGroup::EnqueueLargest(absl::Span<const DevicePart> parts, cuda::LaunchQueue& queue) {
  if (!status_.ok()) return status_;
  return InGroup([&] {
    absl::Status status;
    for (const DevicePart& part : parts) {
      if (part.elements == 0 || !status.ok()) continue;
      status = nccl_->AllReduceMax(part.input, part.output, part.elements, communicator_, queue.stream());
    }
    return status;
  });
}

absl::Status NcclGroup::EnqueuePlace(const std::string& text, cuda::LaunchQueue& queue) {
  auto known = std::find(places_.begin(), places_.end(), text);
  if (known == places_.end()) known = places_.insert(places_.end(), text);
  last_place_ = static_cast<std::int32_t>(known - places_.begin()) + 1;
  return cuda::EnqueuePlace(queue, static_cast<cuda::DevicePlace*>(place_.get()), last_place_, /*comes=*/true);
}

absl::Status NcclGroup::EnqueueEndOfPlace(cuda::LaunchQueue& queue) {
  return cuda::EnqueuePlace(queue, static_cast<cuda::DevicePlace*>(place_.get()), last_place_, /*comes=*/false);
}

absl::Status NcclGroup::InGroup(const std::function<absl::Status()>& calls) {
  absl::Status status = nccl_->BeginGroup();
  if (!status.ok()) return Fail(status);
  status = calls();
  // The group is ended after an error too, since NCCL must leave it.
  const absl::Status ended = nccl_->EndGroup();
  if (status.ok()) status = ended;
  return status.ok() ? Settle() : Fail(status);
}

absl::Status NcclGroup::Settle() {
  Watch watch;
  while (true) {
    const absl::StatusOr<bool> settled = nccl_->Settled(communicator_);
    if (!settled.ok()) return Fail(settled.status());
    if (*settled) return absl::OkStatus();
    if (absl::Status status = Look(watch); !status.ok()) return status;
    std::this_thread::yield();
  }
}

absl::Status NcclGroup::WaitUntil(const std::function<absl::StatusOr<bool>()>& done) {
  const bool has_failed = !status_.ok();
  Watch watch;
  for (int turn = 0;; ++turn) {
    const absl::StatusOr<bool> is_done = done();
    if (!is_done.ok()) return Fail(is_done.status());
    if (*is_done) return has_failed ? absl::OkStatus() : status_;
    if (status_.ok()) {
      if (AwaitsOthers(watch) && !Look(watch).ok()) watch.begin = Clock::now();
    } else if (Clock::now() - watch.begin > time_limit_) {
      return absl::DeadlineExceededError(absl::StrCat("the device has not ended what it did within ",
                                                      time_limit_.count(), " ms after: ", status_.message()));
    }
    if (turn < kPollYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPollSleep);
    }
  }
}

bool NcclGroup::AwaitsOthers(Watch& watch) const {
  if (!is_open_) return true;
  const cuda::DevicePlace place = LastPlace();
  const bool awaits = place.inside != 0;
  if (awaits && place.changes == watch.changes) return true;
  watch.changes = place.changes;
  watch.begin = Clock::now();
  watch.lost = {};
  return awaits;
}

absl::Status NcclGroup::Look(Watch& watch) {
  const Clock::time_point now = Clock::now();
  if (now - watch.looked >= kLookInterval) {
    watch.looked = now;
    if (const auto settled = nccl_->Settled(communicator_); !settled.ok()) return Fail(settled.status());
    if (absl::Status status = LookForLoss(watch, now); !status.ok()) return Fail(status);
  }
  if (now - watch.begin < time_limit_) return absl::OkStatus();
  return Fail(absl::DeadlineExceededError(absl::StrCat("it has waited ", time_limit_.count(), " ms for the others")));
}

absl::Status NcclGroup::LookForLoss(Watch& watch, Clock::time_point now) {
  const std::shared_ptr<Communicator> processes = processes_.lock();
  if (processes == nullptr) return absl::OkStatus();
  const absl::Status loss = processes->LookForLoss();
  if (loss.ok()) return loss;
  if (watch.lost == Clock::time_point()) watch.lost = now;
  return now - watch.lost < std::min<Clock::duration>(kLossGrace, time_limit_ / 16) ? absl::OkStatus() : loss;
}

const absl::Status& NcclGroup::Fail(const absl::Status& status) {
  if (!status_.ok()) return status_;
  std::string text = absl::StrCat(kNcclTransport, "rank ", rank_, " of ", size_, ": ", status.message(), Where());
  if (const auto processes = processes_.lock(); processes != nullptr && absl::IsInternal(status)) {
    // NCCL says that somebody is lost, and not who.
    if (const absl::Status loss = processes->LookForLoss(); !loss.ok()) absl::StrAppend(&text, "; ", loss.message());
  }
  if (communicator_ != nullptr) {
    if (absl::Status aborted = nccl_->Abort(communicator_); !aborted.ok()) {
      absl::StrAppend(&text, "; then ", aborted.message());
    }
    communicator_ = nullptr;
  }
  status_ = absl::Status(status.code(), text);
  return status_;
}

cuda::DevicePlace NcclGroup::LastPlace() const {
  // The device writes it.
  const auto* const place = static_cast<const volatile cuda::DevicePlace*>(place_.get());
  return {place->number, place->changes, place->inside};
}

std::string NcclGroup::Where() const {
  if (place_.get() == nullptr) return "";
  const std::int32_t place = LastPlace().number;
  if (place <= 0 || static_cast<std::size_t>(place) > places_.size()) return "";
  return absl::StrCat("; its GPU has last come to ", places_[static_cast<std::size_t>(place) - 1]);
}

}  // namespace mpc::runtime
