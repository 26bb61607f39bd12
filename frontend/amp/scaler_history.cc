#include "frontend/amp/scaler_history.h"

#include <bit>
#include <cstring>

namespace mpc::amp::internal {
namespace {

absl::StatusOr<std::uint32_t> ReadBits(const Parameter& field) {
  std::uint32_t bits = 0;
  const absl::Status status = field.entry()->Read(absl::MakeSpan(reinterpret_cast<std::uint8_t*>(&bits), sizeof(bits)));
  if (!status.ok()) return status;
  return bits;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScalerHistory>> ScalerHistory::Create(const LossScaler& scaler) {
  auto history = std::unique_ptr<ScalerHistory>(new ScalerHistory(scaler));
  KernelSpec spec{
      .name = "update_loss_scale", .inputs = {{DType::kI32, {}}}, .outputs = {}, .output_used = {}, .attributes = {}};
  for (std::size_t field = 0; field < kFields; ++field) {
    const Parameter& entry = scaler.state().at(field);
    absl::StatusOr<std::uint32_t> bits = ReadBits(entry);
    if (!bits.ok()) return bits.status();
    history->fields_[field] = *bits;
    spec.inputs.push_back(entry.entry()->spec());
    if (field < kMoving) spec.outputs.push_back(entry.entry()->spec());
  }
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> update = cpu::CreateKernel(spec);
  if (!update.ok()) return update.status();
  history->update_ = *std::move(update);
  history->NoteLaunch();
  return history;
}

absl::StatusOr<ScalerHistory::Writes> ScalerHistory::TakeWrites() {
  Writes writes;
  for (std::size_t field = 0; field < kFields; ++field) {
    const Parameter& entry = scaler_.state()[field];
    if (entry.entry()->version() == versions_[field]) continue;
    absl::StatusOr<std::uint32_t> bits = ReadBits(entry);
    if (!bits.ok()) return bits.status();
    writes.emplace_back(field, *bits);
  }
  return writes;
}

void ScalerHistory::NoteLaunch() {
  for (std::size_t field = 0; field < kFields; ++field) versions_[field] = scaler_.state()[field].entry()->version();
}

void ScalerHistory::Step(const Writes& writes, const std::int32_t* first_bad) {
  for (const auto& [field, bits] : writes) fields_[field] = bits;
  if (first_bad == nullptr) return;
  std::array<const void*, kFields + 1> inputs = {first_bad};
  for (std::size_t field = 0; field < kFields; ++field) inputs[field + 1] = &fields_[field];
  std::array<std::uint32_t, kMoving> moved{};
  std::array<void*, kMoving> outputs{};
  for (std::size_t field = 0; field < kMoving; ++field) outputs[field] = &moved[field];
  update_->Run({inputs.data(), outputs.data(), nullptr});
  std::memcpy(fields_.data(), moved.data(), sizeof(moved));
}

double ScalerHistory::scale() const { return std::bit_cast<float>(fields_[0]); }

}  // namespace mpc::amp::internal
