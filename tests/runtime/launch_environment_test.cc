#include "runtime/distributed/launch_environment.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "absl/strings/match.h"

namespace mpc::runtime {
namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<LaunchEnvironment> Read(const Variables& variables) {
  return ReadLaunchEnvironment([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables Torchrun() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "node7"},
          {"MASTER_PORT", "29500"}};
}

/// As mpirun of Open MPI 4.1 sets them on one machine.
Variables OpenMpi() {
  return {{"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_SIZE", "2"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"PMIX_NAMESPACE", "2479751169"},
          {"OMPI_MCA_ess_base_jobid", "2479751169"},
          {"OMPI_MCA_orte_hnp_uri", "2479751168.0;tcp://172.17.0.2:39183"}};
}

Variables Slurm() {
  return {{"SLURM_PROCID", "5"},    {"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_NTASKS", "7"},
          {"SLURM_LOCALID", "1"},   {"SLURM_NODEID", "2"},         {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
          {"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "0"},        {"SLURM_STEP_NODELIST", "node[03-05,07],gpu1"}};
}

Variables With(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables Without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

/// The error names all of `parts`.
void ExpectError(const Variables& variables, const std::vector<std::string>& parts) {
  const absl::StatusOr<LaunchEnvironment> read = Read(variables);
  ASSERT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  for (const std::string& part : parts) EXPECT_TRUE(absl::StrContains(read.status().message(), part)) << read.status();
}

TEST(LaunchEnvironment, NoLauncherIsOneProcess) {
  const absl::StatusOr<LaunchEnvironment> read = Read({});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->launcher, "none");
  EXPECT_EQ(std::tuple(read->rank, read->size, read->local_rank, read->local_size, read->port),
            std::tuple(0, 1, 0, 1, 0));
  EXPECT_EQ(read->address, "127.0.0.1");
  EXPECT_EQ(Read({{"RANK", ""}, {"OMPI_COMM_WORLD_RANK", ""}})->launcher, "none") << "empty variables are not set";
  EXPECT_EQ(Read({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}, {"LOCAL_RANK", "0"}})->launcher, "none");
}

TEST(LaunchEnvironment, ReadsTorchrun) {
  const absl::StatusOr<LaunchEnvironment> read = Read(Torchrun());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->launcher, "torchrun");
  EXPECT_EQ(std::tuple(read->rank, read->size, read->local_rank, read->local_size, read->port),
            std::tuple(3, 4, 1, 2, 29500));
  EXPECT_EQ(read->address, "node7");
}

TEST(LaunchEnvironment, LeavesTorchrunThePortOfItsOwnStore) {
  const Variables variables =
      With(With(Torchrun(), "TORCHELASTIC_USE_AGENT_STORE", "True"), "TORCHELASTIC_RUN_ID", "none");
  const absl::StatusOr<LaunchEnvironment> read = Read(variables);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_NE(read->port, 29500);
  EXPECT_GE(read->port, 16384);
  EXPECT_LE(read->port, 32767);
  EXPECT_EQ(Read(With(variables, "RANK", "0"))->port, read->port) << "all ranks derive one port";
  EXPECT_NE(Read(With(variables, "TORCHELASTIC_RUN_ID", "other"))->port, read->port);
  for (int port = 16384; port < 32768; port += 7) {
    EXPECT_NE(Read(With(variables, "MASTER_PORT", std::to_string(port)))->port, port);
  }
  EXPECT_EQ(Read(With(variables, "TORCHELASTIC_USE_AGENT_STORE", "False"))->port, 29500);
}

TEST(LaunchEnvironment, ReadsOpenMpi) {
  const absl::StatusOr<LaunchEnvironment> read = Read(OpenMpi());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->launcher, "Open MPI");
  EXPECT_EQ(std::tuple(read->rank, read->size, read->local_rank, read->local_size), std::tuple(1, 2, 1, 2));
  EXPECT_EQ(read->address, "127.0.0.1");
  EXPECT_GE(read->port, 16384);
  EXPECT_LE(read->port, 32767);
  EXPECT_EQ(Read(With(OpenMpi(), "OMPI_COMM_WORLD_RANK", "0"))->port, read->port);
  EXPECT_NE(Read(With(OpenMpi(), "PMIX_NAMESPACE", "prterun-host-12@1"))->port, read->port);
  EXPECT_EQ(Read(Without(OpenMpi(), "PMIX_NAMESPACE"))->port, read->port) << "the same number in another variable";
  EXPECT_EQ(Read(With(OpenMpi(), "MASTER_PORT", "1234"))->port, 1234);
  EXPECT_EQ(Read(With(OpenMpi(), "MASTER_ADDR", "node1"))->address, "node1");
}

TEST(LaunchEnvironment, ReadsSlurm) {
  const absl::StatusOr<LaunchEnvironment> read = Read(Slurm());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->launcher, "Slurm");
  EXPECT_EQ(std::tuple(read->rank, read->size, read->local_rank, read->local_size), std::tuple(5, 7, 1, 2));
  EXPECT_EQ(read->address, "node03");
  EXPECT_EQ(Read(With(Slurm(), "SLURM_STEP_NODELIST", "r[1-2]n[07,09].x,a"))->address, "r1n07.x");
  EXPECT_EQ(Read(With(Slurm(), "SLURM_STEP_NODELIST", "big-node,b"))->address, "big-node");
  EXPECT_EQ(Read(With(Slurm(), "MASTER_ADDR", "10.0.0.1"))->address, "10.0.0.1");
  EXPECT_EQ(Read(With(Slurm(), "MASTER_PORT", "77"))->port, 77);
  EXPECT_NE(Read(With(Slurm(), "SLURM_STEP_ID", "1"))->port, read->port) << "steps of a job do not meet";
  EXPECT_EQ(Read(Without(Slurm(), "SLURM_STEP_NUM_TASKS"))->size, 7);
}

TEST(LaunchEnvironment, OneMachineOfSlurmMeetsOnLoopback) {
  Variables variables = With(With(Slurm(), "SLURM_STEP_TASKS_PER_NODE", "7"), "SLURM_NODEID", "0");
  EXPECT_EQ(Read(With(variables, "SLURM_LOCALID", "5"))->address, "127.0.0.1");
}

TEST(LaunchEnvironment, ABatchScriptOfSlurmIsOneProcess) {
  EXPECT_EQ(Read(Without(Slurm(), "SLURM_STEP_ID"))->launcher, "none");
  EXPECT_EQ(Read(With(Slurm(), "SLURM_STEP_ID", "4294967291"))->launcher, "none");
}

TEST(LaunchEnvironment, TheInnermostLauncherCounts) {
  Variables both = Slurm();
  for (const auto& [name, value] : OpenMpi()) both[name] = value;
  EXPECT_EQ(Read(both)->launcher, "Open MPI");
  for (const auto& [name, value] : Torchrun()) both[name] = value;
  both["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(Read(both)->launcher, "torchrun");
}

TEST(LaunchEnvironment, RefusesWhatContradictsTheLauncher) {
  Variables both = OpenMpi();
  for (const auto& [name, value] : Torchrun()) both[name] = value;
  both["WORLD_SIZE"] = "2";
  both["RANK"] = "0";
  ExpectError(both, {"RANK is 0", "WORLD_SIZE is 2", "OMPI_COMM_WORLD_RANK is 1", "OMPI_COMM_WORLD_SIZE is 2"});
  both["RANK"] = "1";
  EXPECT_EQ(Read(both)->rank, 1) << "the same said twice";
  both["WORLD_SIZE"] = both["LOCAL_WORLD_SIZE"] = "1";
  both["RANK"] = both["LOCAL_RANK"] = "0";
  ExpectError(both, {"WORLD_SIZE is 1", "OMPI_COMM_WORLD_SIZE is 2", "unset RANK"});
  both["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(Read(both)->size, 1) << "torchrun runs below mpirun";
  Variables slurm = Slurm();
  for (const auto& [name, value] : Torchrun()) slurm[name] = value;
  ExpectError(slurm, {"WORLD_SIZE is 4", "SLURM_STEP_NUM_TASKS is 7"});
}

TEST(LaunchEnvironment, NamesWhatIsMissing) {
  for (const auto& [name, value] : Torchrun()) {
    ExpectError(Without(Torchrun(), name), {name + " is not set", "torchrun sets RANK, WORLD_SIZE"});
  }
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    ExpectError(Without(OpenMpi(), name), {std::string(name) + " is not set", "mpirun of Open MPI sets"});
  }
  for (const char* name : {"SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NODELIST"}) {
    ExpectError(Without(Slurm(), name), {std::string(name) + " is not set", "srun sets"});
  }
  ExpectError(Without(Slurm(), "SLURM_JOB_ID"), {"neither MASTER_PORT nor SLURM_JOB_ID is set"});
  Variables jobless = Without(Without(OpenMpi(), "PMIX_NAMESPACE"), "OMPI_MCA_ess_base_jobid");
  EXPECT_TRUE(Read(jobless).ok()) << "the part before the semicolon names the job";
  ExpectError(Without(jobless, "OMPI_MCA_orte_hnp_uri"), {"neither MASTER_PORT nor PMIX_NAMESPACE"});
  ExpectError(With(OpenMpi(), "OMPI_COMM_WORLD_SIZE", "4"), {"MASTER_ADDR is not set, and 2 of 4 ranks", "mpirun -x"});
}

TEST(LaunchEnvironment, NamesWhatIsNoNumber) {
  for (const char* garbage : {"x", "-1", "+1", " 1", "1.0", "0x1", "99999999999999999999"}) {
    ExpectError(With(Torchrun(), "RANK", garbage),
                {"RANK is \"" + std::string(garbage) + "\": whole numbers from 0 to 2047"});
    ExpectError(With(OpenMpi(), "OMPI_COMM_WORLD_LOCAL_SIZE", garbage), {"OMPI_COMM_WORLD_LOCAL_SIZE is \"", "1 to"});
    ExpectError(With(Slurm(), "SLURM_PROCID", garbage), {"SLURM_PROCID is \""});
  }
  for (const char* port : {"0", "65536", "http"}) {
    ExpectError(With(Torchrun(), "MASTER_PORT", port), {"MASTER_PORT is \"" + std::string(port) + "\"", "1 to 65535"});
    ExpectError(With(OpenMpi(), "MASTER_PORT", port), {"MASTER_PORT is \""});
  }
  ExpectError(With(Torchrun(), "WORLD_SIZE", "2049"), {"WORLD_SIZE is \"2049\"", "1 to 2048"});
  for (const char* list : {"", ",a", "node[", "node[x]", "node[1-2", "a b", "$(reboot)"}) {
    if (*list != '\0')
      ExpectError(With(Slurm(), "SLURM_STEP_NODELIST", list), {"SLURM_STEP_NODELIST is \"", "accepted"});
  }
  for (const char* tasks : {"x", "2(x", "2(x0)", "(x2)", "2(x1)", "0(x9)", "2(x2)3"}) {
    ExpectError(With(Slurm(), "SLURM_STEP_TASKS_PER_NODE", tasks), {"SLURM_STEP_TASKS_PER_NODE is \"", "accepted"});
  }
}

TEST(LaunchEnvironment, NamesRanksThatAreTooHigh) {
  ExpectError(With(Torchrun(), "RANK", "4"), {"RANK is 4 and WORLD_SIZE is 4", "0 to 3 are accepted"});
  ExpectError(With(Torchrun(), "LOCAL_RANK", "2"), {"LOCAL_RANK is 2 and LOCAL_WORLD_SIZE is 2", "0 to 1"});
  ExpectError(With(Torchrun(), "LOCAL_WORLD_SIZE", "5"), {"LOCAL_WORLD_SIZE is 5 and WORLD_SIZE is 4"});
  ExpectError(With(OpenMpi(), "OMPI_COMM_WORLD_RANK", "2"), {"OMPI_COMM_WORLD_RANK is 2"});
  ExpectError(With(Slurm(), "SLURM_PROCID", "7"), {"SLURM_PROCID is 7 and SLURM_STEP_NUM_TASKS is 7"});
  ExpectError(With(Slurm(), "SLURM_LOCALID", "2"), {"SLURM_LOCALID is 2 and SLURM_STEP_TASKS_PER_NODE"});
}

}  // namespace
}  // namespace mpc::runtime
