#include "runtime/cuda/program_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/constants.h"
#include "runtime/flat_updates.h"

namespace mpc::runtime {
namespace {

/// `status`. Where memory is what failed, the plan is added.
absl::Status Explain(CudaContext& context, const Program& program, std::size_t staging_bytes,
                     const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) || IsHostMemoryExhausted(status)) return status;
  return MemoryExhausted(context, program, staging_bytes, std::string(status.message()));
}

/// Gives `entry` a copy on the device of `context` if it has none.
absl::Status BindEntry(const std::shared_ptr<CudaContext>& context, StateEntry& entry) {
  if (entry.device_copy() == nullptr) {
    absl::StatusOr<std::unique_ptr<CudaStateCopy>> copy = CudaStateCopy::Create(context, entry.spec().bytes());
    if (!copy.ok()) return copy.status();
    entry.set_device_copy(*std::move(copy));
    return absl::OkStatus();
  }
  const auto* copy = dynamic_cast<const CudaStateCopy*>(entry.device_copy());
  if (copy != nullptr && copy->context() == context.get()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("state \"", entry.name(), "\" lives on another device; one StateStore serves one GPU"));
}

/// Gives the state of each flat update copies in one buffer, where none of it has a copy yet.
absl::Status BindFlatState(const std::shared_ptr<CudaContext>& context, const Program& program,
                           const StateEntries& entries) {
  for (const FlatStateBuffer& buffer : FlatStateBuffers(program)) {
    const bool has_copies = std::any_of(buffer.state.begin(), buffer.state.end(),
                                        [&](std::int32_t state) { return entries[state]->device_copy() != nullptr; });
    if (has_copies) continue;
    auto memory = std::make_shared<DeviceMemory>();
    if (absl::Status status = Allocate(context->api(), buffer.bytes, *memory); !status.ok()) return status;
    for (std::size_t i = 0; i < buffer.state.size(); ++i) {
      StateEntry& entry = *entries[buffer.state[i]];
      entry.set_device_copy(std::make_unique<CudaStateCopy>(context, memory, buffer.offsets[i], entry.spec().bytes()));
    }
  }
  return absl::OkStatus();
}

/// The bytes of a fill that the host writes at most. Copies on the device then double them.
constexpr std::size_t kFilledOnHost = 64 << 10;

/// Fills memory of the device, from `to` on.
absl::Status FillOnDevice(CudaContext& context, const ConstantFill& fill, std::byte* to) {
  CudaApi& api = context.api();
  const std::uint8_t byte = fill.element.front();
  if (std::count(fill.element.begin(), fill.element.end(), byte) == static_cast<std::ptrdiff_t>(fill.element.size())) {
    return api.Fill(to, byte, fill.bytes, context.compute_stream());
  }
  std::vector<std::byte> beginning(std::min(fill.bytes, kFilledOnHost));
  RepeatElement(fill, beginning.size(), beginning.data());
  absl::Status status =
      api.Copy(to, beginning.data(), beginning.size(), CudaCopy::kHostToDevice, context.compute_stream());
  // The copy reads `beginning` until then.
  if (status.ok()) status = context.Synchronize();
  for (std::size_t done = beginning.size(); status.ok() && done < fill.bytes; done *= 2) {
    const std::size_t bytes = std::min(done, fill.bytes - done);
    status = api.Copy(to + done, to, bytes, CudaCopy::kDeviceToDevice, context.compute_stream());
  }
  return status;
}

/// Writes the constants of `program` to memory of the device, from `to` on.
absl::Status PlaceConstants(CudaContext& context, const Program& program, std::byte* to) {
  absl::Status status;
  std::size_t offset = program.constants.size();
  if (offset > 0) {
    status =
        context.api().Copy(to, program.constants.data(), offset, CudaCopy::kHostToDevice, context.compute_stream());
  }
  for (const ConstantFill& fill : program.fills) {
    if (status.ok()) status = FillOnDevice(context, fill, to + offset);
    offset += fill.bytes;
  }
  return status.ok() && offset > 0 ? context.Synchronize() : status;
}

}  // namespace

absl::Status MemoryExhausted(CudaContext& context, const Program& program, std::size_t staging_bytes,
                             std::string_view reason) {
  const absl::StatusOr<CudaMemoryInfo> memory = context.api().MemoryInfo();
  const std::size_t held = context.arenas().BytesHeld();
  const std::string free = memory.ok() ? absl::StrCat(memory->free_bytes, " of ", memory->total_bytes) : "unknown";
  return absl::ResourceExhaustedError(absl::StrCat(
      "program \"", program.name, "\" does not fit into the device's memory: it plans an arena of ",
      program.arena_bytes, " bytes (its peak of temporaries), ", program.state_bytes(), " bytes of state and ",
      program.constant_bytes() + staging_bytes, " bytes of constants and staging; bytes free: ", free,
      held > 0 ? absl::StrCat("; bytes that arenas of programs hold: ", held) : "",
      reason.empty() ? "" : absl::StrCat(" (", std::string(reason), ")"), ". A smaller batch needs a smaller arena",
      held > 0 ? "; programs share the largest arena, so load its program first" : ""));
}

absl::StatusOr<ProgramMemory> ProgramMemory::Create(const std::shared_ptr<CudaContext>& context, const Program& program,
                                                    const StateEntries& entries, std::size_t staging_bytes) {
  const absl::StatusOr<CudaMemoryInfo> memory = context->api().MemoryInfo();
  if (!memory.ok()) return memory.status();
  std::size_t needed =
      context->arenas().BytesToAllocate(program.arena_bytes) + program.constant_bytes() + staging_bytes;
  for (const std::shared_ptr<StateEntry>& entry : entries) {
    if (entry->device_copy() == nullptr) needed += entry->spec().bytes();
  }
  if (needed > memory->free_bytes) return MemoryExhausted(*context, program, staging_bytes, "");

  CudaApi& api = context->api();
  ProgramMemory placed;
  absl::StatusOr<std::shared_ptr<DeviceMemory>> arena = context->arenas().Take(api, program.arena_bytes);
  absl::Status status = arena.status();
  if (arena.ok()) placed.arena_ = *std::move(arena);
  if (status.ok()) status = Allocate(api, program.constant_bytes(), placed.constants_);
  if (status.ok()) status = PlaceConstants(*context, program, static_cast<std::byte*>(placed.constants_.get()));
  if (status.ok()) status = BindFlatState(context, program, entries);
  for (const std::shared_ptr<StateEntry>& entry : entries) {
    if (status.ok()) status = BindEntry(context, *entry);
  }
  if (!status.ok()) return Explain(*context, program, staging_bytes, status);
  placed.addresses_.arena = static_cast<std::byte*>(placed.arena_->get());
  placed.addresses_.constants = static_cast<std::byte*>(placed.constants_.get());
  for (const std::shared_ptr<StateEntry>& entry : entries) {
    placed.addresses_.state.push_back(entry->device_copy()->data());
  }
  return placed;
}

}  // namespace mpc::runtime
