// Loggers of a run: the text that they write, and event files read by the rules of their format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "frontend/train/event_file.h"
#include "frontend/train/lambda_callback.h"
#include "frontend/train/tensorboard_logger.h"
#include "frontend/train/text_loggers.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::ReadAll;
using testing::TemporaryFolder;

/// Two epochs of three steps. The loss of step n is 1/n; the second epoch is evaluated.
absl::Status Log(const CallbackList& callbacks, std::int64_t global_step = 0) {
  RunContext context;
  context.global_step = global_step;
  context.set_eval_names({"eval_accuracy", "eval_loss"});
  context.learning_rate = 0.1f;
  callbacks.OnTrainBegin(context);
  for (context.epoch = 1; context.epoch <= 2 && context.failure().ok(); ++context.epoch) {
    context.set_eval_results({});
    callbacks.OnEpochBegin(context);
    for (context.step_in_epoch = 1; context.step_in_epoch <= 3; ++context.step_in_epoch) {
      ++context.global_step;
      context.set_loss(1.0f / static_cast<float>(context.global_step));
      callbacks.OnStepEnd(context);
    }
    context.step_in_epoch = 3;
    if (context.epoch == 2) context.set_eval_results({{"eval_accuracy", 0.75}, {"eval_loss", HUGE_VAL}});
    callbacks.OnEpochEnd(context);
  }
  if (context.failure().ok()) callbacks.OnTrainEnd(context);
  return context.failure();
}

constexpr char kHeader[] =
    "epoch,step_in_epoch,global_step,loss,loss_scale,skipped_steps,learning_rate,eval_accuracy,eval_loss\n";

TEST(CSVLogger, WritesARowAnEpoch) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Log({CSVLogger({.filename = folder / "logs/run.csv"})}).ok());
  EXPECT_EQ(ReadAll(folder / "logs/run.csv"), std::string(kHeader) +
                                                  "1,3,3,0.33333334,1,0,0.1,,\n"
                                                  "2,3,6,0.16666667,1,0,0.1,0.75,inf\n");
}

TEST(CSVLogger, WritesStepsWhereAsked) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Log({CSVLogger({.filename = folder / "run.csv", .separator = ";", .log_steps = 2})}).ok());
  // The end of the second epoch adds its results.
  EXPECT_EQ(ReadAll(folder / "run.csv"),
            "epoch;step_in_epoch;global_step;loss;loss_scale;skipped_steps;learning_rate;eval_accuracy;eval_loss\n"
            "1;2;2;0.5;1;0;0.1;;\n"
            "1;3;3;0.33333334;1;0;0.1;;\n"
            "2;1;4;0.25;1;0;0.1;;\n"
            "2;3;6;0.16666667;1;0;0.1;;\n"
            "2;3;6;0.16666667;1;0;0.1;0.75;inf\n");
}

TEST(CSVLogger, AnEpochThatAddsNothingIsLeftOut) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Log({CSVLogger({.filename = folder / "run.csv", .log_steps = 3})}).ok());
  EXPECT_EQ(ReadAll(folder / "run.csv"), std::string(kHeader) +
                                             "1,3,3,0.33333334,1,0,0.1,,\n"
                                             "2,3,6,0.16666667,1,0,0.1,,\n"
                                             "2,3,6,0.16666667,1,0,0.1,0.75,inf\n");
}

TEST(CSVLogger, AppendsBelowTheSameColumnsOnly) {
  const TemporaryFolder folder;
  const std::string path = folder / "run.csv";
  ASSERT_TRUE(Log({CSVLogger({.filename = path})}).ok());
  const std::string once = ReadAll(path);
  ASSERT_TRUE(Log({CSVLogger({.filename = path, .append = true})}).ok());
  EXPECT_EQ(ReadAll(path), once + once.substr(sizeof(kHeader) - 1));
  ASSERT_TRUE(Log({CSVLogger({.filename = path})}).ok());
  EXPECT_EQ(ReadAll(path), once);
  folder.Write("run.csv", "epoch,loss\n");
  EXPECT_EQ(
      Log({CSVLogger({.filename = path, .append = true})}).message(),
      "CSVLogger: " + path + " has the columns epoch,loss, this run has " + std::string(kHeader, sizeof(kHeader) - 2));
  EXPECT_EQ(ReadAll(path), "epoch,loss\n");
}

TEST(CSVLogger, ARowIsInTheFileAsSoonAsItIsWritten) {
  const TemporaryFolder folder;
  class Reader : public Callback {
   public:
    explicit Reader(std::string path) : path_(std::move(path)) {}
    void OnEpochEnd(RunContext& context) override { sizes.push_back(ReadAll(path_).size()); }
    std::vector<std::size_t> sizes;

   private:
    std::string path_;
  } reader(folder / "run.csv");
  ASSERT_TRUE(Log({CSVLogger({.filename = folder / "run.csv"}), reader}).ok());
  EXPECT_GT(reader.sizes[0], sizeof(kHeader));
  EXPECT_EQ(reader.sizes[1], ReadAll(folder / "run.csv").size());
}

TEST(JSONLinesLogger, WritesAnObjectALine) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Log({JSONLinesLogger({.filename = folder / "run.jsonl", .log_steps = 5})}).ok());
  const std::string expected =
      R"({"epoch":1,"step_in_epoch":3,"global_step":3,"loss":0.33333334,"loss_scale":1,"skipped_steps":0,)"
      "\"learning_rate\":0.1}\n"
      R"({"epoch":2,"step_in_epoch":2,"global_step":5,"loss":0.2,"loss_scale":1,"skipped_steps":0,)"
      "\"learning_rate\":0.1}\n"
      R"({"epoch":2,"step_in_epoch":3,"global_step":6,"loss":0.16666667,"loss_scale":1,"skipped_steps":0,)"
      "\"learning_rate\":0.1,\"eval_accuracy\":0.75,\"eval_loss\":null}\n";
  EXPECT_EQ(ReadAll(folder / "run.jsonl"), expected);
  ASSERT_TRUE(Log({JSONLinesLogger({.filename = folder / "run.jsonl", .append = true, .log_steps = 5})}).ok());
  EXPECT_EQ(ReadAll(folder / "run.jsonl"), expected + expected);
}

TEST(RunLogger, RefusesByName) {
  const TemporaryFolder folder;
  EXPECT_EQ(Log({CSVLogger({.filename = ""})}).message(), "CSVLogger: filename is empty");
  EXPECT_EQ(Log({CSVLogger({.filename = folder / "x", .separator = "::"})}).message(),
            "CSVLogger: separator must be one character that stands in no number, got \"::\"");
  EXPECT_EQ(Log({CSVLogger({.filename = folder / "x", .separator = "\n"})}).message(),
            "CSVLogger: separator must be one character that stands in no number, got \"\\u000a\"");
  EXPECT_EQ(Log({JSONLinesLogger({.filename = folder / "x", .log_steps = -1})}).message(),
            "JSONLinesLogger: log_steps must not be negative, got -1");
  EXPECT_EQ(Log({TensorBoardLogger({.log_dir = ""})}).message(), "TensorBoardLogger: log_dir is empty");
  EXPECT_THAT(std::string(Log({JSONLinesLogger({.filename = folder.path()})}).message()),
              HasSubstr("cannot open " + folder.path() + ": Is a directory"));
  folder.Write("file", "");
  EXPECT_THAT(std::string(Log({TensorBoardLogger({.log_dir = folder / "file"})}).message()),
              HasSubstr("cannot make the folder " + folder / "file"));
}

TEST(RunLogger, NamesAFileThatCannotBeWrittenBeforeTheFirstStep) {
  const TemporaryFolder folder;
  int steps = 0;
  const auto count = [&] { return LambdaCallback({.on_train_step_end = [&](RunContext&) { ++steps; }}); };
  const std::string expected = "cannot open " + folder.path() + ": Is a directory";
  for (const bool append : {false, true}) {
    EXPECT_EQ(Log({CSVLogger({.filename = folder.path(), .append = append}), count()}).message(), expected);
    EXPECT_EQ(Log({JSONLinesLogger({.filename = folder.path(), .append = append}), count()}).message(), expected);
  }
  EXPECT_EQ(steps, 0);
}

TEST(CSVLogger, ARunThatDoesNotBeginLeavesTheFileOfAnEarlierOne) {
  const TemporaryFolder folder;
  folder.Write("run.csv", "kept\n");
  const LambdaCallback refuse(
      {.on_train_begin = [](RunContext& context) { context.Fail(absl::InternalError("refused")); }});
  EXPECT_EQ(Log({CSVLogger({.filename = folder / "run.csv"}), LambdaCallback(refuse)}).message(), "refused");
  EXPECT_EQ(ReadAll(folder / "run.csv"), "kept\n");
}

// A reader of event files, by the rules of their format.

template <typename Integer>
Integer Take(std::string_view& from) {
  Integer value{};
  if (from.size() < sizeof(value)) {
    ADD_FAILURE() << "the file ends within a value";
    from = {};
    return value;
  }
  from.copy(reinterpret_cast<char*>(&value), sizeof(value));
  from.remove_prefix(sizeof(value));
  return value;
}

std::string_view TakeBytes(std::string_view& from, std::uint64_t size) {
  EXPECT_LE(size, from.size());
  const std::string_view bytes = from.substr(0, size);
  from.remove_prefix(bytes.size());
  return bytes;
}

std::uint64_t TakeVarint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = Take<std::uint8_t>(from);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

/// The fields of a protobuf message in order; numbers are widened.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
};

std::vector<Field> FieldsOf(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const std::uint64_t key = TakeVarint(message);
    Field field{.number = key >> 3};
    switch (key & 7) {
      case 0:
        field.value = TakeVarint(message);
        break;
      case 1:
        field.value = Take<std::uint64_t>(message);
        break;
      case 2:
        field.bytes = TakeBytes(message, TakeVarint(message));
        break;
      case 5:
        field.value = Take<std::uint32_t>(message);
        break;
      default:
        ADD_FAILURE() << "wire type " << (key & 7);
        return fields;
    }
    fields.push_back(field);
  }
  return fields;
}

struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
};

Event ParseEvent(std::string_view message) {
  Event event;
  for (const Field& field : FieldsOf(message)) {
    if (field.number == 1) event.wall_time = std::bit_cast<double>(field.value);
    if (field.number == 2) event.step = static_cast<std::int64_t>(field.value);
    if (field.number == 3) event.version = field.bytes;
    if (field.number != 5) continue;
    for (const Field& value : FieldsOf(field.bytes)) {
      EXPECT_EQ(value.number, 1u);
      const std::vector<Field> parts = FieldsOf(value.bytes);
      if (parts.size() != 2 || parts[0].number != 1 || parts[1].number != 2) {
        ADD_FAILURE() << "no tag with a simple value";
        continue;
      }
      event.scalars[std::string(parts[0].bytes)] = std::bit_cast<float>(static_cast<std::uint32_t>(parts[1].value));
    }
  }
  return event;
}

std::vector<Event> ParseEvents(std::string_view content) {
  std::vector<Event> events;
  while (!content.empty()) {
    const std::string_view header = content.substr(0, sizeof(std::uint64_t));
    const auto length = Take<std::uint64_t>(content);
    EXPECT_EQ(Take<std::uint32_t>(content), internal::MaskedCrc32c(header));
    const std::string_view data = TakeBytes(content, length);
    EXPECT_EQ(Take<std::uint32_t>(content), internal::MaskedCrc32c(data));
    events.push_back(ParseEvent(data));
  }
  return events;
}

TEST(EventFile, ChecksumsAreCastagnolis) {
  // RFC 3720, appendix B.4.
  EXPECT_EQ(internal::Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(internal::Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(internal::Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(internal::Crc32c(""), 0u);
  EXPECT_EQ(internal::MaskedCrc32c(""), 0xa282ead8u);
}

TEST(EventFile, NumbersOfEverySizeComeBack) {
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{127}, std::int64_t{128}, std::int64_t{1} << 40,
                                  std::numeric_limits<std::int64_t>::max()}) {
    const std::string tag(200, 't');
    const std::vector<Event> events =
        ParseEvents(internal::EventRecord(internal::ScalarsEvent(1.5, step, {{tag, -0.25}, {"", 3}})));
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].wall_time, 1.5);
    EXPECT_EQ(events[0].step, step);
    EXPECT_EQ(events[0].scalars, (std::map<std::string, float>{{tag, -0.25f}, {"", 3.0f}}));
  }
}

TEST(TensorBoardLogger, WritesScalarsOverTheGlobalStep) {
  const TemporaryFolder folder;
  TensorBoardLogger logger({.log_dir = folder / "runs/first", .log_steps = 2});
  ASSERT_TRUE(Log({logger}, 1000).ok());
  EXPECT_THAT(logger.path(), ::testing::StartsWith(folder / "runs/first/events.out.tfevents."));
  const std::vector<Event> events = ParseEvents(ReadAll(logger.path()));
  std::vector<std::int64_t> steps;
  for (const Event& event : events) steps.push_back(event.step);
  EXPECT_THAT(steps, ElementsAre(0, 1002, 1003, 1004, 1006, 1006));
  EXPECT_EQ(events.front().version, "brain.Event:2");
  EXPECT_EQ(events[1].scalars,
            (std::map<std::string, float>{
                {"loss", 1.0f / 1002}, {"loss_scale", 1}, {"skipped_steps", 0}, {"learning_rate", 0.1f}}));
  EXPECT_EQ(events.back().scalars.at("eval_accuracy"), 0.75f);
  EXPECT_EQ(events.back().scalars.at("eval_loss"), HUGE_VALF);
  EXPECT_THAT(events.back().wall_time, AllOf(Ge(events.front().wall_time), Le(events.front().wall_time + 600)));
  const std::string first = logger.path();
  ASSERT_TRUE(Log({logger}).ok());
  EXPECT_NE(logger.path(), first) << "each run has a file of its own";
}

TEST(TensorBoardLogger, TensorBoardReadsIt) {
  const char* chosen = std::getenv("MPC_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import tensorboard' >/dev/null 2>&1").c_str()) != 0) {
    GTEST_SKIP() << python << " has no tensorboard; MPC_PYTHON names another interpreter";
  }
  const TemporaryFolder folder;
  ASSERT_TRUE(Log({TensorBoardLogger({.log_dir = folder / "runs"})}).ok());
  const std::string script =
      folder.Write("check.py",
                   "import sys\n"
                   "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
                   "events = EventAccumulator(sys.argv[1])\n"
                   "events.Reload()\n"
                   "points = [f'{tag} {e.step} {e.value:.6g}' for tag in sorted(events.Tags()['scalars']) for e in "
                   "events.Scalars(tag)]\n"
                   "open(sys.argv[2], 'w').write('\\n'.join(points))\n");
  ASSERT_EQ(std::system((python + " " + script + " " + folder / "runs" + " " + folder / "points").c_str()), 0);
  EXPECT_EQ(ReadAll(folder / "points"),
            "eval_accuracy 6 0.75\neval_loss 6 inf\nlearning_rate 3 0.1\nlearning_rate 6 0.1\nloss 3 0.333333\n"
            "loss 6 0.166667\nloss_scale 3 1\nloss_scale 6 1\nskipped_steps 3 0\nskipped_steps 6 0");
}

}  // namespace
}  // namespace mpc
