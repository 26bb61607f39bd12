// mpc-train --save --resume from outside, with and without being killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint_file.h"
#include "frontend/state/checkpoint_folder.h"
#include "frontend/state/safetensors.h"
#include "tests/tools/tool_runner.h"

extern char** environ;

namespace mpc::tools {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A small network on one thread; `more` flags.
std::vector<std::string> TrainMlp(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"mlp", "--threads=1", "--batch-size=64", "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

ToolResult Train(const std::vector<std::string>& more) { return RunTool(MPC_TRAIN, TrainMlp(more)); }

std::string Folder(const TemporaryFolder& folder, const std::string& name) { return folder.File(name) + "/"; }

/// The newest file of a folder.
std::string Newest(const std::string& folder) {
  const std::vector<CheckpointFile> files = ListCheckpoints(folder);
  return files.empty() ? "" : files.back().path;
}

TEST(MpcTrainResume, ShorterRunsGiveTheBitsOfOne) {
  const TemporaryFolder folder;
  // Shifted images, a schedule over all epochs, dynamic loss scale: what depends on where training stands.
  const std::vector<std::string> options = {"--epochs=3", "--shift=2", "--amp-level=O2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), options.begin(), options.end());
    return Train(more);
  };
  ASSERT_EQ(with({"--save=" + folder.File("whole")}).exit_code, 0);
  // 23 steps an epoch: one file in the middle of the second, one at its end.
  ASSERT_EQ(with({"--save=" + Folder(folder, "parts"), "--save-every=10", "--keep=0"}).exit_code, 0);
  for (const char* name : {"30", "60"}) {
    const ToolResult resumed =
        with({absl::StrCat("--resume=", folder.File("parts"), "/checkpoint-", name, ".safetensors"),
              "--save=" + folder.File("resumed")});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.error;
    EXPECT_THAT(resumed.error, Not(HasSubstr("warning")));
    EXPECT_TRUE(ReadFile(folder.File("whole")) == ReadFile(folder.File("resumed"))) << name;
  }
  EXPECT_TRUE(ReadFile(folder.File("whole")) == ReadFile(folder.File("parts") + "/checkpoint-69.safetensors"));
}

TEST(MpcTrainResume, EpochsIsTheTotal) {
  const TemporaryFolder folder;
  const std::string save = "--save=" + folder.File("net");
  ASSERT_EQ(Train({"--epochs=1", "--lr-schedule=constant", save}).exit_code, 0);
  const std::string summary = "--summary=" + folder.File("summary.json");
  ASSERT_EQ(Train({"--epochs=1", "--lr-schedule=constant", save, "--resume", summary}).exit_code, 0);
  EXPECT_EQ(ReadJson(folder.File("summary.json"))["steps"], 0) << "it is done";
  EXPECT_GT(ReadJson(folder.File("summary.json"))["test_accuracy"], 0.1);
  ASSERT_EQ(Train({"--epochs=2", "--lr-schedule=constant", save, "--resume", summary}).exit_code, 0);
  EXPECT_EQ(ReadJson(folder.File("summary.json"))["steps"], 23);
  ASSERT_EQ(Train({"--epochs=2", "--lr-schedule=constant", "--save=" + folder.File("whole")}).exit_code, 0);
  EXPECT_TRUE(ReadFile(folder.File("net")) == ReadFile(folder.File("whole")));
}

// As --save-every leaves a file at the last step of an epoch. Steps that an earlier run has made are none of this one.
TEST(MpcTrainResume, AnEpochOfWhichNoStepIsLeftHasTheLossOfItsLastStep) {
  const TemporaryFolder folder;
  const std::string run = Folder(folder, "run");
  ASSERT_EQ(Train({"--epochs=2", "--save=" + run, "--save-every=1", "--keep=0"}).exit_code, 0);
  std::vector<double> losses;
  for (const int left : {1, 0}) {
    SCOPED_TRACE(left);
    ASSERT_EQ(Train({"--epochs=2", absl::StrCat("--resume=", run, "checkpoint-", 23 - left, ".safetensors"),
                     "--summary=" + folder.File("summary.json")})
                  .exit_code,
              0);
    const auto summary = ReadJson(folder.File("summary.json"));
    EXPECT_EQ(summary["epochs"][0]["steps"], left);
    EXPECT_EQ(summary["steps"], 23 + left);
    losses.push_back(summary["train_loss"][0].get<double>());
  }
  EXPECT_EQ(losses[0], losses[1]) << "of one step the mean is its loss";
}

TEST(MpcTrainResume, KeepsTheNewestAndSaysWhatItGoesOnFrom) {
  const TemporaryFolder folder;
  const std::string save = "--save=" + Folder(folder, "run");
  ASSERT_EQ(Train({"--epochs=1", save, "--save-every=5", "--keep=2"}).exit_code, 0);
  std::vector<std::int64_t> steps;
  for (const CheckpointFile& file : ListCheckpoints(folder.File("run"))) steps.push_back(file.step);
  EXPECT_THAT(steps, ElementsAre(20, 23));
  // The newest is damaged.
  const std::string newest = ReadFile(Newest(folder.File("run")));
  WriteFile(Newest(folder.File("run")), newest.substr(0, newest.size() / 2));
  const ToolResult resumed = Train({"--epochs=1", save, "--resume", "--quiet=false"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  EXPECT_THAT(resumed.error, HasSubstr("warning: passing over a checkpoint"));
  EXPECT_THAT(resumed.output, HasSubstr("checkpoint-20.safetensors: 20 steps, 0 epochs and 20 of 23 steps done"));
  EXPECT_TRUE(ReadFile(Newest(folder.File("run"))) == newest);
}

TEST(MpcTrainInit, FrozenLayersStayAsTheFileHasThem) {
  const TemporaryFolder folder;
  ASSERT_EQ(Train({"--epochs=1", "--save=" + folder.File("first")}).exit_code, 0);
  const absl::StatusOr<Safetensors> first = LoadSafetensors(folder.File("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  // Weight decay would move what has no gradient, and a low level has copies of its own.
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--optimizer=torch-adamw", "--weight-decay=0.1", "--amp-level=O2"}}) {
    std::vector<std::string> arguments = {"--epochs=1", "--init=" + folder.File("first"), "--freeze=fc1,fc2.weight",
                                          "--save=" + folder.File("second")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult frozen = Train(arguments);
    ASSERT_EQ(frozen.exit_code, 0) << frozen.error;
    const absl::StatusOr<Safetensors> second = LoadSafetensors(folder.File("second"));
    ASSERT_TRUE(second.ok()) << second.status();
    for (const auto& [name, stays] :
         {std::pair{"fc1.weight", true}, std::pair{"fc1.bias", true}, std::pair{"fc2.weight", true},
          std::pair{"fc2.bias", false}, std::pair{"fc3.weight", false}}) {
      ASSERT_TRUE(first->Find(name) != nullptr && second->Find(name) != nullptr) << name;
      EXPECT_EQ(first->Find(name)->bytes() == second->Find(name)->bytes(), stays) << name;
    }
  }
}

TEST(MpcTrainResume, AFileOfMoreFrozenLayersIsForLoad) {
  const TemporaryFolder folder;
  const std::string file = folder.File("frozen");
  ASSERT_EQ(Train({"--epochs=1", "--freeze=fc1", "--save=" + file}).exit_code, 0);
  const std::string error = Train({"--epochs=2", "--resume=" + file}).error;
  EXPECT_THAT(error, HasSubstr("'optimizer.fc1.weight.velocity' (slot) is missing"));
  EXPECT_THAT(error, HasSubstr("nothing was loaded; the file was trained with the parameters of these slots frozen: "
                               "--load=FILE in place of --resume begins from its weights"));
  EXPECT_EQ(Train({"--epochs=1", "--load=" + file}).exit_code, 0);
  const std::string of_adam = Train({"--epochs=2", "--optimizer=adam", "--resume=" + file}).error;
  EXPECT_THAT(of_adam, Not(HasSubstr("slots frozen"))) << "the optimizer is another one";
}

TEST(MpcTrainResume, AFileOfFewerFrozenLayersIsForLoad) {
  const TemporaryFolder folder;
  const std::string file = folder.File("all"), other = folder.File("other");
  ASSERT_EQ(Train({"--epochs=1", "--save=" + file}).exit_code, 0);
  const std::string error = Train({"--epochs=2", "--freeze=fc1", "--resume=" + file}).error;
  EXPECT_THAT(error, HasSubstr("'optimizer.fc1.weight.velocity' is unknown to this Model"));
  EXPECT_THAT(error,
              HasSubstr("nothing was loaded; the parameters of these slots are frozen here, and the file trained "
                        "them: freeze what the file has frozen, or --load=FILE in place of --resume begins from "
                        "its weights"));
  EXPECT_EQ(Train({"--epochs=1", "--freeze=fc1", "--load=" + file}).exit_code, 0);
  EXPECT_THAT(Train({"--epochs=2", "--freeze=fc1", "--optimizer=adam", "--resume=" + file}).error,
              Not(HasSubstr("are frozen here")))
      << "the optimizer is another one";
  ASSERT_EQ(Train({"--epochs=1", "--freeze=fc2", "--save=" + other}).exit_code, 0);
  EXPECT_THAT(Train({"--epochs=2", "--freeze=fc1", "--resume=" + other}).error,
              HasSubstr("nothing was loaded; the file was trained with other parameters frozen than are frozen here: "
                        "--load=FILE in place of --resume begins from its weights"));
}

TEST(MpcTrainResume, ErrorsAreFoundBeforeTraining) {
  const TemporaryFolder folder;
  EXPECT_THAT(Train({"--resume"}).error, HasSubstr("--resume needs a checkpoint"));
  EXPECT_THAT(Train({"--resume=x", "--load=y"}).error, HasSubstr("give one of them"));
  EXPECT_THAT(Train({"--save-every=3"}).error, HasSubstr("--save-every needs --save"));
  EXPECT_THAT(Train({"--resume=" + folder.File("absent")}).error, HasSubstr("there is no checkpoint"));
  ASSERT_EQ(Train({"--epochs=1", "--save=" + Folder(folder, "run")}).exit_code, 0);
  const ToolResult again = Train({"--epochs=1", "--save=" + folder.File("run")});
  EXPECT_NE(again.exit_code, 0);
  EXPECT_THAT(again.error, HasSubstr("training begins at step 0: resume from the newest checkpoint"));
  const ToolResult other = Train({"--epochs=1", "--optimizer=adam", "--resume=" + folder.File("run")});
  EXPECT_THAT(other.error, HasSubstr("the optimizer was Momentum, here it is Adam"));
  // Model names the call that begins a new run, and the tool its flag.
  ASSERT_EQ(Train({"--epochs=1", "--save-every=10", "--keep=0", "--save=" + Folder(folder, "parts")}).exit_code, 0);
  const ToolResult parts =
      Train({"--epochs=1", "--batch-size=16", "--resume=" + folder.File("parts") + "/checkpoint-10.safetensors"});
  EXPECT_EQ(parts.exit_code, 1);
  EXPECT_THAT(parts.error, HasSubstr("or begin a new run with --load=FILE in place of --resume"));
}

/// A tool that runs beside the test.
class RunningTool {
 public:
  explicit RunningTool(const std::vector<std::string>& arguments, const std::string& output = "/dev/null") {
    std::vector<char*> argv = {const_cast<char*>(MPC_TRAIN)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT, 0600);
    EXPECT_EQ(::posix_spawn(&child_, MPC_TRAIN, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  /// True if it ended by itself within `time`, well.
  bool EndsWithin(duration<double> time) {
    const auto end = steady_clock::now() + time;
    int status = 0;
    while (steady_clock::now() < end) {
      if (::waitpid(child_, &status, WNOHANG) == child_) {
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  void Kill() {
    Send(SIGKILL);
    Wait();
  }
  void Send(int signal) { ::kill(child_, signal); }
  /// What waitpid tells of its end.
  int Wait() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    return status;
  }

 private:
  pid_t child_ = 0;
};

/// A training that would take hours, once it has trained an epoch.
class LongTraining {
 public:
  LongTraining(const TemporaryFolder& folder, const std::string& save)
      : tool_({"mlp", "--threads=1", "--epochs=1000000", "--save=" + save, "--trace=" + folder.File("trace"),
               "--trace-steps=900000", "--summary=" + folder.File("summary")},
              folder.File("output")) {
    const auto end = steady_clock::now() + std::chrono::seconds(60);
    while (ReadFile(folder.File("output")).find("epoch 1/") == std::string::npos && steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  RunningTool& tool() { return tool_; }

 private:
  RunningTool tool_;
};

TEST(MpcTrainResume, TheFirstSignalEndsTheRunAfterItsStepAndSaves) {
  for (const auto& [signal, name] : {std::pair{SIGINT, "net"}, std::pair{SIGTERM, "run/"}}) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    LongTraining training(folder, folder.File(name));
    training.tool().Send(signal);
    const int status = training.tool().Wait();
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    EXPECT_THAT(ReadFile(folder.File("output")), HasSubstr(" 0 skipped, loss scale 1"));
    const std::int64_t steps = ReadJson(folder.File("summary"))["steps"];
    EXPECT_GE(steps, 45);
    const std::string path = signal == SIGINT ? folder.File(name) : Newest(folder.File(name));
    const ToolResult resumed = RunTool(MPC_TRAIN, {"mlp", "--threads=1", "--epochs=1", "--resume=" + path});
    EXPECT_THAT(resumed.output, HasSubstr(absl::StrCat(path, ": ", steps, " steps, ")));
  }
}

TEST(MpcTrainResume, TheSecondSignalEndsTheProcessAtOnce) {
  const TemporaryFolder folder;
  LongTraining training(folder, folder.File("net"));
  training.tool().Send(SIGINT);
  training.tool().Send(SIGTERM);
  const int status = training.tool().Wait();
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  // The kernel may deliver them in either order.
  EXPECT_THAT(WTERMSIG(status), testing::AnyOf(SIGINT, SIGTERM));
  EXPECT_FALSE(ReadJson(folder.File("summary")).is_object());
}

TEST(MpcTrainResume, FiftyKillsAtRandomTimesLoseNothing) {
  const TemporaryFolder folder;
  const auto arguments = [&](const std::string& name) {
    return TrainMlp({"--epochs=5", "--save-every=1", "--keep=3", "--resume", "--save=" + Folder(folder, name)});
  };
  // How long a process takes to its first checkpoint, and to its end.
  const auto begin = steady_clock::now();
  const auto elapsed = [&] { return duration<double>(steady_clock::now() - begin); };
  RunningTool whole(arguments("whole"));
  while (ListCheckpoints(folder.File("whole")).empty() && elapsed().count() < 60) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const duration<double> startup = elapsed();
  ASSERT_TRUE(whole.EndsWithin(std::chrono::seconds(120)));
  const duration<double> work = elapsed() - startup;
  const std::string expected = ReadFile(Newest(folder.File("whole")));
  ASSERT_EQ(ListCheckpoints(folder.File("whole")).back().step, 115);

  // Most lives reach the steps; none gets through more than a third of them.
  std::mt19937 engine(7);
  std::uniform_real_distribution<double> delay(0.5 * startup.count(), startup.count() + work.count() / 3);
  int kills = 0;
  int finished = 0;
  for (int run = 0; kills < 50; ++run) {
    const std::string name = absl::StrCat("run", run);
    bool ended = false;
    while (!ended) {
      RunningTool tool(arguments(name));
      ended = tool.EndsWithin(kills < 50 ? duration<double>(delay(engine)) : std::chrono::seconds(120));
      if (!ended) {
        tool.Kill();
        ++kills;
      }
      for (const CheckpointFile& file : ListCheckpoints(folder.File(name))) {
        EXPECT_TRUE(internal::ReadCheckpointFile(file.path).ok()) << "after kill " << kills;
      }
      ASSERT_LE(kills, 50);
    }
    ++finished;
    EXPECT_TRUE(ReadFile(Newest(folder.File(name))) == expected) << "run " << run << " after " << kills << " kills";
    EXPECT_EQ(ListCheckpoints(folder.File(name)).size(), 3u);
  }
  EXPECT_GE(finished, 1);
}

}  // namespace
}  // namespace mpc::tools
