// rehearse collective as its user meets it.
#include <nlohmann/json.hpp>

#include "tests/support/sanitizers.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace collective_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CollectiveProgramTest : public ProgramTest {
 protected:
  nlohmann::json Json(const std::string& arguments) const {
    const Outcome outcome = Execute("collective " + arguments + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json();
  }
  nlohmann::json Rows(const std::string& arguments) const { return Json(arguments)["rows"]; }
};

TEST_F(CollectiveProgramTest, PrintsNcclTestsTableAndJson) {
  const Outcome text = Execute("collective all-reduce --cluster dgx-a100 -b 1M -e 4M -f 2");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("out-of-place"), HasSubstr("     1048576        262144"),
                    HasSubstr("# Avg bus bandwidth    : "),
                    HasSubstr("# chosen by NCCL 2.28: 1048576 to 2097152 B: ring, protocol ll")));
  const auto json = Json("all-gather --cluster perlmutter --ranks 0,2-3 -b 3000");
  EXPECT_EQ(json["schema"], "rehearse.collective.v1");
  EXPECT_EQ(json["ranks"], 3);
  const auto& rows = json["rows"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["bytes"], 3000);
  // busbw = algbw (p-1)/p, p = 3
  EXPECT_NEAR(rows[0]["busbw_gb_per_s"].get<double>(),
              rows[0]["algbw_gb_per_s"].get<double>() * 2 / 3, 1e-12);
  EXPECT_EQ(rows[0]["algorithm"], "ring");
  EXPECT_EQ(rows[0]["protocol"], "ll");
}

// 4,096 · 4,095 messages: their ways alone need more than is allowed here.
TEST_F(CollectiveProgramTest, OneTooLargeForTheMachineIsRefusedBeforeItIsThere) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes more addresses than the limit leaves";
  EXPECT_EQ(Shell("ulimit -v 3000000; \"$rehearse\" collective all-to-all --cluster "
                  "dgx-h100:nodes=512 --fidelity step -b 64M -e 64M > out.txt 2> err.txt"),
            1);
  EXPECT_THAT(ReadFile(folder_ / "err.txt"),
              AllOf(HasSubstr("too large for this machine"), HasSubstr("16773120 messages")));
}

TEST_F(CollectiveProgramTest, KindsMayBeSpelledAsNcclDoes) {
  const std::string expected = Execute("collective all-reduce --cluster dgx-a100 -b 1M").out;
  for (const char* kind : {"all_reduce", "AllReduce", "allreduce", "all_reduce_perf"}) {
    EXPECT_EQ(Execute(std::string("collective ") + kind + " --cluster dgx-a100 -b 1M").out,
              expected);
  }
  const std::string exchange = Execute("collective send-receive --cluster dgx-a100 -b 1M").out;
  EXPECT_THAT(exchange, HasSubstr("sendrecv_perf"));
  for (const char* kind : {"sendrecv", "SendRecv", "sendrecv_perf"}) {
    EXPECT_EQ(Execute(std::string("collective ") + kind + " --cluster dgx-a100 -b 1M").out,
              exchange);
  }
}

TEST_F(CollectiveProgramTest, AHashedFabricShowsMediansAndTheirRange) {
  // Two pods of Selene, with all NICs of each in use.
  const std::string arguments = "all-gather --cluster selene:nodes=64 -a ring -p none -b 1G";
  const auto sprayed = Json(arguments);
  const auto hashed = Json(arguments + " --routing ecmp");
  EXPECT_FALSE(sprayed.contains("routing"));
  EXPECT_EQ(hashed["routing"], "ecmp with 1 queue pair");
  const double median = hashed["rows"][0]["seconds"];
  const std::vector<double> range = hashed["rows"][0]["seconds_of_seeds"];
  ASSERT_EQ(range.size(), 2u);
  EXPECT_LE(sprayed["rows"][0]["seconds"].get<double>(), range[0]);
  EXPECT_LE(range[0], median);
  EXPECT_LE(median, range[1]);
  // One seed has no range, and is among them.
  const auto one = Json(arguments + " --routing ecmp --routing-seed 3")["rows"][0];
  EXPECT_FALSE(one.contains("seconds_of_seeds"));
  EXPECT_GE(one["seconds"].get<double>(), range[0]);
  EXPECT_LE(one["seconds"].get<double>(), range[1]);
  // NCCL does not see which cables its flows are hashed to.
  const std::string choice = "all-reduce --cluster selene:nodes=64 -b 64M -e 1G";
  const auto as_sprayed = Rows(choice);
  const auto as_hashed = Rows(choice + " --routing ecmp --routing-seed 1");
  ASSERT_EQ(as_hashed.size(), as_sprayed.size());
  for (size_t i = 0; i < as_sprayed.size(); ++i)
    for (const char* key : {"algorithm", "protocol", "channels"})
      EXPECT_EQ(as_hashed[i][key], as_sprayed[i][key]);
  EXPECT_THAT(Execute("collective " + arguments + " --routing ecmp").out,
              HasSubstr("# ecmp with 1 queue pair: medians of 8 seeds, which differ by up to"));
}

TEST_F(CollectiveProgramTest, EachSizeStandsBesideWhatTheWiresAllow) {
  const std::string arguments = "all-gather --cluster dgx-h100:nodes=2 -b 1M -e 1G -f 1024";
  const auto rows = Rows(arguments);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    const double share = row["share_of_bound"];
    EXPECT_NEAR(share, row["least_seconds"].get<double>() / row["seconds"].get<double>(), 1e-12);
    EXPECT_LE(share, 1);
  }
  EXPECT_GT(rows[1]["share_of_bound"].get<double>(), rows[0]["share_of_bound"].get<double>());
  EXPECT_THAT(Execute("collective " + arguments).out,
              HasSubstr("% of what the wires allow, by what"));
  EXPECT_THAT(Execute("collective " + arguments + " --format csv").out,
              HasSubstr("least_seconds,share_of_bound"));
  EXPECT_THAT(Execute("collective " + arguments + " --explain").out,
              HasSubstr("of this is reached"));
}

TEST_F(CollectiveProgramTest, ARoutingThatAFabricCannotHaveIsAMistake) {
  const std::string on = "collective all-reduce --cluster ";
  ExpectMistake(on + "selene --routing sprai", {"--routing", "did you mean \"spray\"?"});
  ExpectMistake(on + "selene --routing valiant", {"a fat tree", "spray, flowlet, ecmp"});
  ExpectMistake(on + "tpu-v4 --routing spray", {"a torus", "it takes dimension-order"});
  ExpectMistake(on + "perlmutter --routing ecmp", {"a dragonfly", "spray, minimal, valiant"});
  ExpectMistake(on + "selene --queue-pairs 0", {"--queue-pairs", "1 to 128"});
  ExpectMistake(on + "selene --queue-pairs 2", {"--queue-pairs", "\"ecmp\""});
}

TEST_F(CollectiveProgramTest, EveryKindHasADefault) {
  for (const std::string kind : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                 "broadcast", "reduce", "send-receive"}) {
    for (const std::string cluster : {"dgx-a100:nodes=2", "frontier"}) {
      const auto rows = Rows(kind + " --cluster " + cluster + " -b 16M");
      ASSERT_EQ(rows.size(), 1u) << kind;
      EXPECT_GT(rows[0]["seconds"].get<double>(), 0) << kind;
    }
  }
  EXPECT_EQ(Rows("barrier --cluster dgx-a100")[0]["bytes"], 0);
}

// On an idle machine a collective takes what the pace of 8 A100 says, whose rings carry 229.5 GB/s
// (tests/collectives/nccl/pace_test.cc). Steps of 8 MiB take 98.8 us with LL, plus 14 times 0.3 us
// and the start, 9.5 us; with Simple 36.55 us, plus 14·8.2, 0.28·36.55 and 9.5 us. The copy of its
// own block counts as 0.34 steps.
TEST_F(CollectiveProgramTest, PinnedProtocolsTakeWhatTheModelSays) {
  const std::string kind = "all-reduce --cluster dgx-a100 -b 64M -a ring ";
  const double bytes = 64 << 20;
  const double moving = bytes * 14.34 / 8 / 229.5e9;
  EXPECT_NEAR(Rows(kind + "-p LL")[0]["seconds"].get<double>(),
              9.5e-6 + 14 * 0.3e-6 + moving / 0.37, 1e-8);
  const double step = bytes / 8 / 229.5e9;
  EXPECT_NEAR(Rows(kind + "-p Simple")[0]["seconds"].get<double>(),
              9.5e-6 + 14 * 8.2e-6 + 0.28 * step + moving, 1e-8);
  // A tree of one machine is a chain: half of 0.92·229.5, corrected by 0.8 for 2^20 times 64 bytes.
  EXPECT_NEAR(
      Rows("all-reduce --cluster dgx-a100 -b 64M -a Tree -p simple")[0]["seconds"].get<double>(),
      64.4e-6 + bytes / (0.92 * 229.5e9 / 2 * 0.8), 1e-6);
}

TEST_F(CollectiveProgramTest, SizesGrowByAFactorOrAStep) {
  const std::string kind = "all-reduce --cluster dgx-a100 -n 5 -w 1 ";
  const auto factors = Rows(kind + "-b 1K -e 9K -f 3");
  ASSERT_EQ(factors.size(), 3u);
  EXPECT_EQ(factors[2]["bytes"], 9216);
  const auto steps = Rows(kind + "-b 1K -e 9K -i 4K");
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1]["bytes"], 5120);
}

// Sizes played one after another take as long as each takes alone, and so do groups that run at the
// same time.
TEST_F(CollectiveProgramTest, ASweepIsItsSizes) {
  for (const std::string groups : {"", " --groups 8"}) {
    const std::string kind = "all-reduce --cluster dgx-a100:nodes=2" + groups;
    const auto sweep = Rows(kind + " -b 1K -e 64M -f 16");
    for (const auto& row : sweep) {
      const auto alone = Rows(kind + " -b " + std::to_string(row["bytes"].get<uint64_t>()));
      EXPECT_NEAR(row["seconds"].get<double>(), alone[0]["seconds"].get<double>(), 1e-11);
      EXPECT_EQ(row["algorithm"], alone[0]["algorithm"]);
    }
  }
}

TEST_F(CollectiveProgramTest, ExplainSaysWhatEachChoiceWouldTakeHere) {
  const std::string arguments =
      "collective all-gather --cluster dgx-a100:nodes=2 -b 64M --explain --format json";
  const auto json = nlohmann::json::parse(Execute(arguments).out);
  EXPECT_EQ(json["library"], "NCCL 2.28");
  for (const auto& row : json["nccl_model"]) EXPECT_GT(row["simulated_seconds"].get<double>(), 0);
  const auto older = nlohmann::json::parse(Execute(arguments + " --nccl 2.18").out);
  EXPECT_EQ(older["library"], "NCCL 2.18");
  ExpectMistake("collective all-gather --cluster dgx-a100 --nccl 2.19", {"--nccl", "2.18"});
}

TEST_F(CollectiveProgramTest, ExplainNamesChoiceRingsAndTheLinkThatBinds) {
  const std::string arguments = "collective all-reduce --cluster dgx-a100:nodes=2 -b 64M --explain";
  const Outcome text = Execute(arguments);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("chosen"), HasSubstr("NCCL 2.28"), HasSubstr("8 parts"),
                    HasSubstr("node0/nic0->"), HasSubstr("carries 0.234 times the size")));
  const auto json = nlohmann::json::parse(Execute(arguments + " --format json").out);
  EXPECT_EQ(json["parts"].size(), 8u);
  EXPECT_EQ(json["chosen"]["algorithm"], "ring");
  EXPECT_EQ(json["binding_link"]["kind"], "network");
  // Each of 8 NICs carries an eighth of 2·15/16, and it is idle for the latency of 56 us and more.
  EXPECT_NEAR(json["binding_link"]["times_the_size"].get<double>(), 2 * 15.0 / 16 / 8, 1e-9);
  EXPECT_LT(json["binding_link"]["busy_share"].get<double>(), 1);
}

TEST_F(CollectiveProgramTest, Mistakes) {
  const std::string collective = "collective all-reduce --cluster dgx-a100 ";
  ExpectMistake("collective all-redce --cluster dgx-a100", {"all-redce", "all-reduce"});
  ExpectMistake("collective", {"kind"});
  ExpectMistake("collective all-reduce", {"--cluster"});
  ExpectMistake("collective all-reduce --cluster dgx-a10", {"dgx-a100"});
  ExpectMistake(collective + "-b 2M -e 1M", {"--minbytes 2M", "--maxbytes 1M"});
  ExpectMistake(collective + "-b 0", {"--minbytes"});
  ExpectMistake(collective + "-b -5", {"-5"});
  ExpectMistake(collective + "-b 9223372036854775808", {"--minbytes", "9223372036854775808"});
  ExpectMistake(collective + "-b 99999999999999999999", {"--minbytes"});
  ExpectMistake(collective + "-b 1M -e 2E", {"--maxbytes"});
  ExpectMistake(collective + "-f 1", {"--stepfactor"});
  ExpectMistake(collective + "-f 0.5", {"--stepfactor"});
  ExpectMistake(collective + "-f nan", {"--stepfactor"});
  ExpectMistake(collective + "-i 0", {"--stepbytes"});
  ExpectMistake(collective + "-i 1K -f 2", {"--stepbytes", "--stepfactor"});
  ExpectMistake(collective + "-b 1 -e 1G -i 1", {"100000 sizes"});
  ExpectMistake(collective + "-n 0", {"--iters"});
  ExpectMistake(collective + "-w x", {"--warmup_iters"});
  ExpectMistake(collective + "--groups 3", {"divides the 8 ranks"});
  ExpectMistake(collective + "--groups 8", {"at least two ranks"});
  ExpectMistake(collective + "--groups 0", {"--groups"});
  ExpectMistake(collective + "--ranks 0,8", {"--ranks", "7"});
  ExpectMistake(collective + "--ranks 1,1", {"twice"});
  ExpectMistake(collective + "--ranks 0-3,2-5", {"twice"});
  ExpectMistake("collective broadcast --cluster dgx-a100 --root 8", {"--root", "0 to 7"});
  ExpectMistake(collective + "--root 1", {"--root", "no root"});
  ExpectMistake(collective + "--algorithm tre", {"--algorithm", "tree"});
  ExpectMistake(collective + "--algorithm bruck", {"--algorithm", "cannot do all-reduce"});
  ExpectMistake(collective + "--protocol ll12", {"--protocol", "ll128"});
  ExpectMistake(collective + "--fidelity flui", {"fluid"});
  ExpectMistake(collective + "--calibration missing.json", {"missing.json"});
  ExpectMistake(collective + "--algorithm bucket",
                {"--algorithm bucket: ", "cannot do all-reduce here", "expected another"});
  ExpectMistake(collective + "--algorithm bucket --explain", {"--algorithm bucket: "});
  // What the machine does not have.
  ExpectMistake("collective all-reduce --cluster rtx4090-pcie -p ll128",
                {"--protocol ll128: ", "not available"});
  ExpectMistake("collective all-reduce --cluster rtx4090-pcie -a nvls", {"nvls", "NVSwitch"});
  ExpectMistake(collective + "-a nvls", {"nvls", "Hopper"});
  ExpectMistake("collective all-reduce --cluster tpu-v4:x=2,y=2,z=2 -p simple",
                {"neither NVIDIA's nor AMD's"});
}

// What the page shows is checked in a browser (tools/viewer/tests).
TEST_F(CollectiveProgramTest, ACollectiveCanBeWatchedStepByStep) {
  const std::string ring = "collective all-reduce --cluster switch:devices=4 -a ring -p none ";
  const Outcome outcome = Execute(ring + "--watch -o ring.html");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("open it in a browser"));
  EXPECT_THAT(ReadFile(folder_ / "ring.html"), HasSubstr("id=\"rehearse-film\">"));
  ExpectMistake(ring + "--watch", {"-o FILE.html is missing"});
  ExpectMistake(ring + "-o ring.html", {"-o is for --watch"});
  ExpectMistake(ring + "--watch --explain -o x.html", {"--watch and --explain"});
  ExpectMistake(ring + "-e 1G --watch -o x.html", {"--watch and --maxbytes"});
  ExpectMistake("collective barrier --cluster dgx-a100 --watch -o x.html", {"moves no data"});
  ExpectMistake("collective dispatch --cluster dgx-h800 --watch -o x.html", {"not for dispatch"});
  ExpectMistake("collective all-reduce --cluster dgx-a100:nodes=32 --watch -o x.html",
                {"found 256 ranks, expected at most 128"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.html"));
}

}  // namespace collective_test
}  // namespace rehearse
