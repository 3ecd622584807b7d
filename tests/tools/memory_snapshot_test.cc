// explain --memory beside what PyTorch's allocator wrote down.
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace memory_snapshot_command_test {

using ::testing::HasSubstr;
using ::testing::Not;

class MemorySnapshotCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    Write("snapshot.json",
          R"({"segments": [{"device": 0, "address": 0, "total_size": 4294967296, "blocks": []},)"
          R"( {"device": 2, "address": 0, "total_size": 1048576, "blocks": []}],)"
          R"( "device_traces": [[)"
          R"({"action": "alloc", "addr": 8, "size": 2147483648, "time_us": 5, "frames": [)"
          R"({"filename": "/home/u/model.py", "line": 8, "name": "forward"}]},)"
          R"({"action": "free_requested", "addr": 8, "size": 2147483648, "time_us": 1005},)"
          R"({"action": "free_completed", "addr": 8, "size": 2147483648, "time_us": 1005}]]})");
  }

  const std::string explain_ = "explain '" + Shipped("strategy-fsdp-llama") + "' ";
};

TEST_F(MemorySnapshotCommandTest, MeasuredStandsBesidePredicted) {
  const Outcome text = Execute(explain_ + "--memory --snapshot snapshot.json");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("\nMeasured   snapshot.json, device 0, 3 events in 1 ms\n"));
  EXPECT_THAT(text.out, HasSubstr("  allocated                   2 GiB "));
  EXPECT_THAT(text.out, HasSubstr("  reserved                    4 GiB"));
  EXPECT_THAT(text.out, HasSubstr("        2 GiB       1 block   model.py:8 forward\n"));
  EXPECT_THAT(text.out, HasSubstr("the snapshot also has device 2; --snapshot-device shows"));

  const Outcome json = Execute(explain_ + "--memory --snapshot snapshot.json --format json");
  EXPECT_EQ(json.code, 0) << json.err;
  const nlohmann::json measured = nlohmann::json::parse(json.out)["measured"];
  EXPECT_EQ(measured["allocated_bytes"], 2147483648.0);
  EXPECT_EQ(measured["moments"].size(), 3u);
  EXPECT_EQ(measured["largest"][0]["where"], "model.py:8 forward");

  const Outcome other = Execute(explain_ + "--memory --snapshot snapshot.json --snapshot-device 2");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("device 2, the state at its end alone"));
  EXPECT_THAT(Execute(explain_ + "--memory").out, Not(HasSubstr("Measured")));
}

TEST_F(MemorySnapshotCommandTest, WrongUseIsOneMessage) {
  ExpectMistake(explain_ + "--snapshot snapshot.json", {"stands beside --memory"});
  ExpectMistake(explain_ + "--memory --snapshot-device 1", {"--snapshot", "there is none"});
  ExpectMistake(explain_ + "--memory --snapshot snapshot.json --snapshot-device 1",
                {"snapshot.json: ", "there is no device 1; the snapshot has 0, 2"});
  ExpectMistake(explain_ + "--memory --snapshot none.pickle", {"none.pickle"});
  ExpectMistake(explain_ + "--memory --snapshot '" + Shipped("strategy-fsdp-llama") + "'",
                {"no snapshot of PyTorch 2.0 or later"});
}

}  // namespace memory_snapshot_command_test
}  // namespace rehearse
