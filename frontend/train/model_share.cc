// What several processes of a Model share: the batches of an epoch, and what a run begins from.
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/train/model_impl.h"

namespace mpc {

using internal::CheckpointMetadata;
using internal::TextMap;

namespace {

/// `metadata` as one text, which MetadataOf reads.
std::string TextOf(const CheckpointMetadata& metadata) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : internal::FormatMetadata(metadata)) {
    texts.push_back(name);
    texts.push_back(value);
  }
  return internal::FormatNames(texts);
}

absl::StatusOr<CheckpointMetadata> MetadataOf(const std::string& text) {
  const std::vector<std::string> texts = internal::ParseNames(text).value_or(std::vector<std::string>());
  TextMap stored;
  for (std::size_t i = 0; i + 1 < texts.size(); i += 2) stored[texts[i]] = texts[i + 1];
  return internal::ParseMetadata(stored, "what rank 0 has sent of its compilation");
}

}  // namespace

absl::Status Model::Impl::CheckUpdates() const {
  if (!updates.is_shared) return absl::OkStatus();
  const std::pair<const char*, std::int64_t> numbers[] = {{"accumulation_steps is ", updates.of_process},
                                                          {"the number of processes is ", updates.processes}};
  for (const auto& [what, number] : numbers) {
    if (number < 1 || (number & (number - 1)) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(what, number,
                                                   "; where training is data parallel accepted are powers of two, so ",
                                                   "that any number of processes adds gradients in one order"));
  }
  return absl::OkStatus();
}

absl::Status Model::Impl::CheckOneProgram(const char* what) const {
  if (!updates.have_own_program()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      what, ": an update of ", updates.processes, " processes with ", updates.of_process,
      " steps each runs two Programs, and one is accepted; ", "give accumulation_steps = 1, or one process"));
}

absl::StatusOr<std::int64_t> Model::Impl::CountSteps(const data::Dataset& dataset) {
  const absl::StatusOr<std::int64_t> batches = dataset.size();
  if (!batches.ok()) return batches.status();
  position.CountBatches(*batches);
  if (!updates.are_whole()) return *batches;
  const bool accumulates = updates.of_process > 1;
  if (*batches > 0 && updates.StepsOf(*batches) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("an epoch has ", *batches, " batches, and ", updates.processes, " processes take ",
                     accumulates ? absl::StrCat(updates.of_process, " each an update") : "one each a step"));
  }
  const std::int64_t left_out = *batches % updates.all();
  if (left_out > 0) {
    remarks.SayOnce("left out",
                    absl::StrCat("remark: the last ", left_out, " of ", *batches,
                                 " batches of an epoch make no step of ", updates.processes, " processes",
                                 accumulates ? absl::StrCat(" with ", updates.of_process, " batches each") : ""));
  }
  return updates.StepsOf(*batches);
}

absl::Status Model::Impl::CheckUpdatesOfEpoch(std::int64_t batches, std::int64_t steps) {
  if (!updates.are_whole() || batches >= steps) return absl::OkStatus();
  const std::string what = absl::StrCat("the last batch of an epoch has fewer rows than the others of its step, which ",
                                        updates.all(), " batches make, so that the step is left out");
  if (batches == 0) return absl::InvalidArgumentError(absl::StrCat(what, ": no step is left"));
  remarks.SayOnce("fewer rows", absl::StrCat("remark: ", what));
  return absl::OkStatus();
}

absl::Status Model::Impl::BeginUpdate() const {
  if (!updates.are_whole()) return absl::OkStatus();
  for (Parameter entry : pass_state->accumulators()) {
    if (entry.name() != internal::kMicroStep) continue;
    const std::vector<std::uint8_t> zero(entry.entry()->spec().bytes(), 0);
    return entry.SetData(Tensor::FromBytes(entry.entry()->spec(), zero.data(), zero.size()));
  }
  return absl::OkStatus();
}

std::vector<Parameter> Model::Impl::KeptState(const Model& model) const {
  std::vector<Parameter> state = model.AllState();
  if (updates.are_whole()) {
    std::erase_if(state, [](const Parameter& each) { return each.entry()->role() == Role::kAccumulator; });
  }
  return state;
}

absl::Status Model::Impl::TakeWholeUpdates(const std::string& path, const CheckpointMetadata& metadata,
                                           Safetensors& content) const {
  if (!updates.are_whole()) return absl::OkStatus();
  if (metadata.position.step_in_epoch % updates.all() != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " was saved behind batch ", metadata.position.step_in_epoch, " of an epoch; an update of ",
                     updates.processes, " processes takes ", updates.all(), ", and a run begins at a complete update"));
  }
  for (const auto& [name, value] : content.tensors) {
    if (name != internal::kMicroStep || value.Item<std::int64_t>() == 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        path, " was saved behind ", value.Item<std::int64_t>(), " batches of an update that is not complete; ",
        "where training is data parallel a run begins at a complete update"));
  }
  std::erase_if(content.tensors, [&](const auto& tensor) {
    const auto role = metadata.roles.find(tensor.first);
    return role != metadata.roles.end() && role->second == Role::kAccumulator;
  });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<data::DatasetIterator>> Model::Impl::OpenShare(const data::Dataset& dataset,
                                                                              std::int64_t epoch,
                                                                              std::int64_t micro_batches,
                                                                              std::int64_t first_update,
                                                                              data::PartialUpdate partial) const {
  absl::StatusOr<std::unique_ptr<data::ShareIterator>> share =
      dataset.NewShareIterator(epoch, {.micro_batches = micro_batches,
                                       .rank = processes.rank(),
                                       .ranks = processes.size(),
                                       .first_update = first_update,
                                       .partial = partial});
  if (!share.ok()) return share.status();
  return *std::move(share);
}

absl::StatusOr<std::unique_ptr<data::DatasetIterator>> Model::Impl::OpenEpoch(const data::Dataset& dataset) const {
  if (updates.are_whole()) {
    return OpenShare(dataset, position.in_run().data_epoch, updates.all(),
                     position.in_run().step_in_epoch / updates.of_process, data::PartialUpdate::kDrop);
  }
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(position.in_run().data_epoch);
  if (!rows.ok()) return rows.status();
  data::Row row;
  for (std::int64_t skipped = 0; skipped < position.in_run().step_in_epoch; ++skipped) {
    absl::StatusOr<bool> more = (*rows)->Next(&row);
    if (!more.ok()) return more.status();
    if (!*more) {
      return absl::FailedPreconditionError(absl::StrCat("the data set ends after ", skipped, " steps, the checkpoint ",
                                                        "is at step ", position.in_run().step_in_epoch,
                                                        " of this epoch"));
    }
  }
  return rows;
}

absl::Status Model::Impl::ShareStart(const Model& model, std::int64_t epochs, const data::Dataset& dataset,
                                     const internal::Validation* validation) {
  if (processes.size() == 1) return absl::OkStatus();
  // What rank 0 is to compile as the file that it has loaded, which others need not have.
  CheckpointMetadata decided;
  resumed.AddTo(decided);
  if (const compiler::PrecisionMap* slots = decision.of_training(); slots != nullptr) decided.precision = *slots;
  const std::string own_text = TextOf(decided);
  std::string text = own_text;
  if (absl::Status status = processes.SendText(text); !status.ok()) return status;
  const bool differs = text != own_text;
  if (differs) {
    absl::StatusOr<CheckpointMetadata> sent = MetadataOf(text);
    if (!sent.ok()) return sent.status();
    decided = *std::move(sent);
    // A step of the user's own has the state that the file's inputs give it.
    TraceState(decided);
  }
  const std::vector<Parameter> state = KeptState(model);
  if (absl::Status status = InitialiseParameters(state); !status.ok()) return status;
  CheckpointMetadata own = Describe(state);
  // A file has the number of all processes. What differs is named as it was given.
  own.step["accumulation_steps"] = absl::StrCat(updates.of_process);
  std::vector<std::string> settings = DescribeRun(epochs, dataset, validation);
  settings.push_back(absl::StrCat("model: ", own.model));
  settings.push_back(absl::StrCat("optimizer: ", own.optimizer));
  for (const auto& [name, map] : {std::pair("", &own.environment), std::pair("amp ", &own.amp),
                                  std::pair("loss scale ", &own.loss_scale), std::pair("", &own.step)}) {
    for (const auto& [key, value] : *map) settings.push_back(absl::StrCat(name, key, ": ", value));
  }
  for (const std::string& setting : processes.Settings()) settings.push_back(setting);
  for (const Parameter& entry : state) {
    settings.push_back(absl::StrCat(entry.name(), ": ", entry.traced_spec().ToString()));
  }
  if (absl::Status status = processes.CompareSettings(settings); !status.ok()) return status;
  if (differs) {
    resumed.Take(decided, /*same_level=*/true);
    // Without a decision this rank forgets its own, and decides anew with rank 0.
    decision.Keep(decided.precision, /*training=*/true);
  }
  if (absl::Status status = processes.SendState(state); !status.ok()) return status;
  return position.SendFromFirst(processes);
}

}  // namespace mpc
