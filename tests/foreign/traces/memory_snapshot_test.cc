// Snapshots of PyTorch's allocator, pickled by Python itself.
#include "tools/foreign/traces/pytorch_memory/memory_snapshot.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "tools/foreign/traces/pytorch_memory/plain_data.h"

namespace rehearse {
namespace memory_snapshot_test {

using ::testing::HasSubstr;

// One snapshot by several protocols, in base64 as in PyTorch's page. On device 1, a block of 300
// bytes and one of 600 are there before the first event. A segment of 2 MiB comes, blocks of 1,000
// and 5,000 bytes are asked for, the first is given back, one of 512 is asked for before the stream
// is done with it, and that of 300 is given back. Events are 10 us apart.
constexpr const char* kPickles[] = {
    // protocol 0
    "KGRwMApWc2VnbWVudHMKcDEKKGxwMgooZHAzClZkZXZpY2UKcDQKSTEKc1ZhZGRyZXNzCnA1Ckk0MDk2CnNWdG90"
    "YWxfc2l6ZQpwNgpJMTA0ODU3NgpzVnN0cmVhbQpwNwpJMApzVmJsb2NrcwpwOAoobHA5CihkcDEwClZzaXplCnAx"
    "MQpJNTEyCnNWcmVxdWVzdGVkX3NpemUKcDEyCkkwCnNWc3RhdGUKcDEzClZpbmFjdGl2ZQpwMTQKc1ZmcmFtZXMK"
    "cDE1CihscDE2CnNhKGRwMTcKZzExCkkxMDI0CnNnMTIKSTYwMApzZzEzClZhY3RpdmVfYWxsb2NhdGVkCnAxOApz"
    "ZzE1CihscDE5CnNhKGRwMjAKZzExCkkxMDQ3MDQwCnNnMTMKZzE0CnNnMTIKSTAKc2cxNQoobHAyMQpzYXNhKGRw"
    "MjIKZzQKSTEKc2c1CkwxMDk5NTExNjI3Nzc2TApzZzYKSTIwOTcxNTIKc2c3CkkwCnNnOAoobHAyMwooZHAyNApn"
    "MTEKSTEwMjQKc2cxMwpnMTQKc2cxMgpJMApzZzE1CihscDI1CnNhKGRwMjYKZzExCkk1MTIwCnNnMTIKSTUwMDAK"
    "c2cxMwpnMTgKc2cxNQoobHAyNwooZHAyOApWZmlsZW5hbWUKcDI5ClYveC90b3JjaC9ubi9saW5lYXIucHkKcDMw"
    "CnNWbGluZQpwMzEKSTEyNQpzVm5hbWUKcDMyClZmb3J3YXJkCnAzMwpzYShkcDM0CmcyOQpWL2hvbWUvdS9tb2Rl"
    "bC5weQpwMzUKc2czMQpJODgKc2czMgpnMzMKc2FzYShkcDM2CmcxMQpJMjA0OApzZzEzCmcxNApzZzEyCkkwCnNn"
    "MTUKKGxwMzcKc2EoZHAzOApnMTEKSTUxMgpzZzEyCkk1MTIKc2cxMwpnMTgKc2cxNQoobHAzOQpzYXNhc1ZkZXZp"
    "Y2VfdHJhY2VzCnA0MAoobHA0MQoobHA0MgphKGxwNDMKKGRwNDQKVmFjdGlvbgpwNDUKVnNlZ21lbnRfYWxsb2MK"
    "cDQ2CnNWYWRkcgpwNDcKTDEwOTk1MTE2Mjc3NzZMCnNnMTEKSTIwOTcxNTIKc2c3CkkwCnNWdGltZV91cwpwNDgK"
    "STEwMDAKc2cxNQoobHA0OQpzYShkcDUwCmc0NQpWYWxsb2MKcDUxCnNnNDcKTDEwOTk1MTE2Mjc3NzZMCnNnMTEK"
    "STEwMDAKc2c3CkkwCnNnNDgKSTEwMTAKc2cxNQpnMjcKc2EoZHA1MgpnNDUKZzUxCnNnNDcKTDEwOTk1MTE2Mjg4"
    "MDBMCnNnMTEKSTUwMDAKc2c3CkkwCnNnNDgKSTEwMjAKc2cxNQpnMjcKc2EoZHA1MwpnNDUKVmZyZWVfcmVxdWVz"
    "dGVkCnA1NApzZzQ3CkwxMDk5NTExNjI3Nzc2TApzZzExCkkxMDAwCnNnNwpJMApzZzQ4CkkxMDMwCnNnMTUKKGxw"
    "NTUKc2EoZHA1NgpnNDUKZzUxCnNnNDcKTDEwOTk1MTE2MzU5NjhMCnNnMTEKSTUxMgpzZzcKSTAKc2c0OApJMTA0"
    "MApzZzE1CihscDU3CnNhKGRwNTgKZzQ1ClZmcmVlX2NvbXBsZXRlZApwNTkKc2c0NwpMMTA5OTUxMTYyNzc3NkwK"
    "c2cxMQpJMTAwMApzZzcKSTAKc2c0OApJMTA1MApzZzE1CihscDYwCnNhKGRwNjEKZzQ1Cmc1NApzZzQ3Ckk0MDk2"
    "CnNnMTEKSTMwMApzZzcKSTAKc2c0OApJMTA2MApzZzE1CihscDYyCnNhKGRwNjMKZzQ1Cmc1OQpzZzQ3Ckk0MDk2"
    "CnNnMTEKSTMwMApzZzcKSTAKc2c0OApJMTA3MApzZzE1CihscDY0CnNhYXNWYWxsb2NhdG9yX3NldHRpbmdzCnA2"
    "NQooZHA2NgpWZXhwYW5kYWJsZV9zZWdtZW50cwpwNjcKSTAwCnNzLg==",
    // protocol 1
    "fXEAKFgIAAAAc2VnbWVudHNxAV1xAih9cQMoWAYAAABkZXZpY2VxBEsBWAcAAABhZGRyZXNzcQVNABBYCgAAAHRv"
    "dGFsX3NpemVxBkoAABAAWAYAAABzdHJlYW1xB0sAWAYAAABibG9ja3NxCF1xCSh9cQooWAQAAABzaXplcQtNAAJY"
    "DgAAAHJlcXVlc3RlZF9zaXplcQxLAFgFAAAAc3RhdGVxDVgIAAAAaW5hY3RpdmVxDlgGAAAAZnJhbWVzcQ9dcRB1"
    "fXERKGgLTQAEaAxNWAJoDVgQAAAAYWN0aXZlX2FsbG9jYXRlZHESaA9dcRN1fXEUKGgLSgD6DwBoDWgOaAxLAGgP"
    "XXEVdWV1fXEWKGgESwFoBUwxMDk5NTExNjI3Nzc2TApoBkoAACAAaAdLAGgIXXEXKH1xGChoC00ABGgNaA5oDEsA"
    "aA9dcRl1fXEaKGgLTQAUaAxNiBNoDWgSaA9dcRsofXEcKFgIAAAAZmlsZW5hbWVxHVgVAAAAL3gvdG9yY2gvbm4v"
    "bGluZWFyLnB5cR5YBAAAAGxpbmVxH0t9WAQAAABuYW1lcSBYBwAAAGZvcndhcmRxIXV9cSIoaB1YEAAAAC9ob21l"
    "L3UvbW9kZWwucHlxI2gfS1hoIGghdWV1fXEkKGgLTQAIaA1oDmgMSwBoD11xJXV9cSYoaAtNAAJoDE0AAmgNaBJo"
    "D11xJ3VldWVYDQAAAGRldmljZV90cmFjZXNxKF1xKShdcSpdcSsofXEsKFgGAAAAYWN0aW9ucS1YDQAAAHNlZ21l"
    "bnRfYWxsb2NxLlgEAAAAYWRkcnEvTDEwOTk1MTE2Mjc3NzZMCmgLSgAAIABoB0sAWAcAAAB0aW1lX3VzcTBN6ANo"
    "D11xMXV9cTIoaC1YBQAAAGFsbG9jcTNoL0wxMDk5NTExNjI3Nzc2TApoC03oA2gHSwBoME3yA2gPaBt1fXE0KGgt"
    "aDNoL0wxMDk5NTExNjI4ODAwTApoC02IE2gHSwBoME38A2gPaBt1fXE1KGgtWA4AAABmcmVlX3JlcXVlc3RlZHE2"
    "aC9MMTA5OTUxMTYyNzc3NkwKaAtN6ANoB0sAaDBNBgRoD11xN3V9cTgoaC1oM2gvTDEwOTk1MTE2MzU5NjhMCmgL"
    "TQACaAdLAGgwTRAEaA9dcTl1fXE6KGgtWA4AAABmcmVlX2NvbXBsZXRlZHE7aC9MMTA5OTUxMTYyNzc3NkwKaAtN"
    "6ANoB0sAaDBNGgRoD11xPHV9cT0oaC1oNmgvTQAQaAtNLAFoB0sAaDBNJARoD11xPnV9cT8oaC1oO2gvTQAQaAtN"
    "LAFoB0sAaDBNLgRoD11xQHVlZVgSAAAAYWxsb2NhdG9yX3NldHRpbmdzcUF9cUJYEwAAAGV4cGFuZGFibGVfc2Vn"
    "bWVudHNxQ0kwMApzdS4=",
    // protocol 2
    "gAJ9cQAoWAgAAABzZWdtZW50c3EBXXECKH1xAyhYBgAAAGRldmljZXEESwFYBwAAAGFkZHJlc3NxBU0AEFgKAAAA"
    "dG90YWxfc2l6ZXEGSgAAEABYBgAAAHN0cmVhbXEHSwBYBgAAAGJsb2Nrc3EIXXEJKH1xCihYBAAAAHNpemVxC00A"
    "AlgOAAAAcmVxdWVzdGVkX3NpemVxDEsAWAUAAABzdGF0ZXENWAgAAABpbmFjdGl2ZXEOWAYAAABmcmFtZXNxD11x"
    "EHV9cREoaAtNAARoDE1YAmgNWBAAAABhY3RpdmVfYWxsb2NhdGVkcRJoD11xE3V9cRQoaAtKAPoPAGgNaA5oDEsA"
    "aA9dcRV1ZXV9cRYoaARLAWgFigYAAAAAAAFoBkoAACAAaAdLAGgIXXEXKH1xGChoC00ABGgNaA5oDEsAaA9dcRl1"
    "fXEaKGgLTQAUaAxNiBNoDWgSaA9dcRsofXEcKFgIAAAAZmlsZW5hbWVxHVgVAAAAL3gvdG9yY2gvbm4vbGluZWFy"
    "LnB5cR5YBAAAAGxpbmVxH0t9WAQAAABuYW1lcSBYBwAAAGZvcndhcmRxIXV9cSIoaB1YEAAAAC9ob21lL3UvbW9k"
    "ZWwucHlxI2gfS1hoIGghdWV1fXEkKGgLTQAIaA1oDmgMSwBoD11xJXV9cSYoaAtNAAJoDE0AAmgNaBJoD11xJ3Vl"
    "dWVYDQAAAGRldmljZV90cmFjZXNxKF1xKShdcSpdcSsofXEsKFgGAAAAYWN0aW9ucS1YDQAAAHNlZ21lbnRfYWxs"
    "b2NxLlgEAAAAYWRkcnEvigYAAAAAAAFoC0oAACAAaAdLAFgHAAAAdGltZV91c3EwTegDaA9dcTF1fXEyKGgtWAUA"
    "AABhbGxvY3EzaC+KBgAAAAAAAWgLTegDaAdLAGgwTfIDaA9oG3V9cTQoaC1oM2gvigYABAAAAAFoC02IE2gHSwBo"
    "ME38A2gPaBt1fXE1KGgtWA4AAABmcmVlX3JlcXVlc3RlZHE2aC+KBgAAAAAAAWgLTegDaAdLAGgwTQYEaA9dcTd1"
    "fXE4KGgtaDNoL4oGACAAAAABaAtNAAJoB0sAaDBNEARoD11xOXV9cTooaC1YDgAAAGZyZWVfY29tcGxldGVkcTto"
    "L4oGAAAAAAABaAtN6ANoB0sAaDBNGgRoD11xPHV9cT0oaC1oNmgvTQAQaAtNLAFoB0sAaDBNJARoD11xPnV9cT8o"
    "aC1oO2gvTQAQaAtNLAFoB0sAaDBNLgRoD11xQHVlZVgSAAAAYWxsb2NhdG9yX3NldHRpbmdzcUF9cUJYEwAAAGV4"
    "cGFuZGFibGVfc2VnbWVudHNxQ4lzdS4=",
    // protocol 4
    "gASVWwMAAAAAAAB9lCiMCHNlZ21lbnRzlF2UKH2UKIwGZGV2aWNllEsBjAdhZGRyZXNzlE0AEIwKdG90YWxfc2l6"
    "ZZRKAAAQAIwGc3RyZWFtlEsAjAZibG9ja3OUXZQofZQojARzaXpllE0AAowOcmVxdWVzdGVkX3NpemWUSwCMBXN0"
    "YXRllIwIaW5hY3RpdmWUjAZmcmFtZXOUXZR1fZQoaAtNAARoDE1YAmgNjBBhY3RpdmVfYWxsb2NhdGVklGgPXZR1"
    "fZQoaAtKAPoPAGgNaA5oDEsAaA9dlHVldX2UKGgESwFoBYoGAAAAAAABaAZKAAAgAGgHSwBoCF2UKH2UKGgLTQAE"
    "aA1oDmgMSwBoD12UdX2UKGgLTQAUaAxNiBNoDWgSaA9dlCh9lCiMCGZpbGVuYW1llIwVL3gvdG9yY2gvbm4vbGlu"
    "ZWFyLnB5lIwEbGluZZRLfYwEbmFtZZSMB2ZvcndhcmSUdX2UKGgdjBAvaG9tZS91L21vZGVsLnB5lGgfS1hoIGgh"
    "dWV1fZQoaAtNAAhoDWgOaAxLAGgPXZR1fZQoaAtNAAJoDE0AAmgNaBJoD12UdWV1ZYwNZGV2aWNlX3RyYWNlc5Rd"
    "lChdlF2UKH2UKIwGYWN0aW9ulIwNc2VnbWVudF9hbGxvY5SMBGFkZHKUigYAAAAAAAFoC0oAACAAaAdLAIwHdGlt"
    "ZV91c5RN6ANoD12UdX2UKGgtjAVhbGxvY5RoL4oGAAAAAAABaAtN6ANoB0sAaDBN8gNoD2gbdX2UKGgtaDNoL4oG"
    "AAQAAAABaAtNiBNoB0sAaDBN/ANoD2gbdX2UKGgtjA5mcmVlX3JlcXVlc3RlZJRoL4oGAAAAAAABaAtN6ANoB0sA"
    "aDBNBgRoD12UdX2UKGgtaDNoL4oGACAAAAABaAtNAAJoB0sAaDBNEARoD12UdX2UKGgtjA5mcmVlX2NvbXBsZXRl"
    "ZJRoL4oGAAAAAAABaAtN6ANoB0sAaDBNGgRoD12UdX2UKGgtaDZoL00AEGgLTSwBaAdLAGgwTSQEaA9dlHV9lCho"
    "LWg7aC9NABBoC00sAWgHSwBoME0uBGgPXZR1ZWWMEmFsbG9jYXRvcl9zZXR0aW5nc5R9lIwTZXhwYW5kYWJsZV9z"
    "ZWdtZW50c5SJc3Uu",
    // protocol 5
    "gAWVWwMAAAAAAAB9lCiMCHNlZ21lbnRzlF2UKH2UKIwGZGV2aWNllEsBjAdhZGRyZXNzlE0AEIwKdG90YWxfc2l6"
    "ZZRKAAAQAIwGc3RyZWFtlEsAjAZibG9ja3OUXZQofZQojARzaXpllE0AAowOcmVxdWVzdGVkX3NpemWUSwCMBXN0"
    "YXRllIwIaW5hY3RpdmWUjAZmcmFtZXOUXZR1fZQoaAtNAARoDE1YAmgNjBBhY3RpdmVfYWxsb2NhdGVklGgPXZR1"
    "fZQoaAtKAPoPAGgNaA5oDEsAaA9dlHVldX2UKGgESwFoBYoGAAAAAAABaAZKAAAgAGgHSwBoCF2UKH2UKGgLTQAE"
    "aA1oDmgMSwBoD12UdX2UKGgLTQAUaAxNiBNoDWgSaA9dlCh9lCiMCGZpbGVuYW1llIwVL3gvdG9yY2gvbm4vbGlu"
    "ZWFyLnB5lIwEbGluZZRLfYwEbmFtZZSMB2ZvcndhcmSUdX2UKGgdjBAvaG9tZS91L21vZGVsLnB5lGgfS1hoIGgh"
    "dWV1fZQoaAtNAAhoDWgOaAxLAGgPXZR1fZQoaAtNAAJoDE0AAmgNaBJoD12UdWV1ZYwNZGV2aWNlX3RyYWNlc5Rd"
    "lChdlF2UKH2UKIwGYWN0aW9ulIwNc2VnbWVudF9hbGxvY5SMBGFkZHKUigYAAAAAAAFoC0oAACAAaAdLAIwHdGlt"
    "ZV91c5RN6ANoD12UdX2UKGgtjAVhbGxvY5RoL4oGAAAAAAABaAtN6ANoB0sAaDBN8gNoD2gbdX2UKGgtaDNoL4oG"
    "AAQAAAABaAtNiBNoB0sAaDBN/ANoD2gbdX2UKGgtjA5mcmVlX3JlcXVlc3RlZJRoL4oGAAAAAAABaAtN6ANoB0sA"
    "aDBNBgRoD12UdX2UKGgtaDNoL4oGACAAAAABaAtNAAJoB0sAaDBNEARoD12UdX2UKGgtjA5mcmVlX2NvbXBsZXRl"
    "ZJRoL4oGAAAAAAABaAtN6ANoB0sAaDBNGgRoD12UdX2UKGgtaDZoL00AEGgLTSwBaAdLAGgwTSQEaA9dlHV9lCho"
    "LWg7aC9NABBoC00sAWgHSwBoME0uBGgPXZR1ZWWMEmFsbG9jYXRvcl9zZXR0aW5nc5R9lIwTZXhwYW5kYWJsZV9z"
    "ZWdtZW50c5SJc3Uu",
};

std::string Page(const std::string& pickle) {
  return "\n<!DOCTYPE html>\n<html><script type=\"module\">const local_files = "
         "[{\"name\": \"snapshot.pickle\", \"base64\": \"" +
         pickle + "\"}]\n</script></html>";
}

MemorySnapshot Read(std::string_view bytes, std::optional<uint32_t> device = {}) {
  return ReadMemorySnapshot(bytes, "snapshot.pickle", device);
}

std::string MessageOf(std::string_view bytes, std::optional<uint32_t> device = {}) {
  try {
    Read(bytes, device);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(MemorySnapshotTest, IsReadByEveryProtocol) {
  for (const char* pickle : kPickles) {
    const MemorySnapshot snapshot = Read(Page(pickle));
    EXPECT_EQ(snapshot.device, 1u);
    EXPECT_EQ(snapshot.events, 8u);
    EXPECT_NEAR(snapshot.lasted.value(), 70e-6, 1e-12);
    EXPECT_EQ(snapshot.before, Bytes(512 + 1024));
    EXPECT_EQ(snapshot.peak.allocated, Bytes(512 + 1024 + 1024 + 5120));
    EXPECT_EQ(snapshot.peak.event, 3u);
    EXPECT_NEAR(snapshot.peak.after.value(), 20e-6, 1e-12);
    EXPECT_EQ(snapshot.active, Bytes(512 + 1024 + 1024 + 5120 + 512));
    EXPECT_EQ(snapshot.reserved, Bytes(3 << 20));
    EXPECT_EQ(snapshot.living, 4u);
    ASSERT_EQ(snapshot.largest.size(), 2u);
    EXPECT_EQ(snapshot.largest[0].where, "linear.py:125 forward, in model.py:88 forward");
    EXPECT_EQ(snapshot.largest[0].blocks, 2u);
    EXPECT_EQ(snapshot.largest[0].bytes, Bytes(1024 + 5120));
    EXPECT_EQ(snapshot.largest[1].bytes, Bytes(512 + 1024));
    EXPECT_FALSE(snapshot.refused);
    EXPECT_FALSE(snapshot.is_expandable);
    ASSERT_EQ(snapshot.moments.size(), 8u);
    EXPECT_EQ(snapshot.moments.back().allocated, Bytes(1024 + 5120 + 512));
  }
}

std::string EventsAsJson(const std::string& events) {
  return R"({"segments": [{"device": 0, "address": 0, "total_size": 1048576, "blocks": []}],)"
         R"( "device_traces": [[)" +
         events + "]]}";
}

TEST(MemorySnapshotTest, IsReadAsJsonAndGzipped) {
  const std::string json =
      EventsAsJson(R"({"action": "alloc", "addr": 8, "size": 700}, {"action": "oom", "size": 99})");
  for (const std::string& bytes : {json, Gzip(json)}) {
    const MemorySnapshot snapshot = Read(bytes);
    EXPECT_EQ(snapshot.peak.allocated, Bytes(1024));
    EXPECT_EQ(snapshot.refused, Bytes(99));
    EXPECT_FALSE(snapshot.has_times);
    EXPECT_THAT(snapshot.largest.front().where, HasSubstr("unknown place"));
  }
}

// Times that cannot be are as if they were missing.
TEST(MemorySnapshotTest, TimesThatCannotBeAreMissing) {
  const MemorySnapshot snapshot =
      Read(EventsAsJson(R"({"action": "alloc", "addr": 8, "size": 700, "time_us": 1e300})"));
  EXPECT_FALSE(snapshot.has_times);
  EXPECT_EQ(snapshot.lasted, Seconds(0));
}

// More allocated than was ever reserved, and a name that no terminal should obey and JSON cannot
// hold.
TEST(MemorySnapshotTest, WhatIsDamagedCanBeShown) {
  std::string events =
      EventsAsJson(R"({"action": "alloc", "addr": 8, "size": 1e15, "frames": )"
                   R"([{"filename": "m.py", "line": 12345678, "name": "a\u001b[31m"}]})");
  const MemorySnapshot snapshot = Read(events);
  EXPECT_EQ(snapshot.largest.front().where, "m.py:12345678 a\\x1b[31m");
  EXPECT_LT(ToText(snapshot, "snapshot.json", MemoryPicture(), false).size(), 2000u);
  const std::string pickle =
      "(S'segments'\n(lS'device_traces'\n(((S'action'\nS'alloc'\nS'addr'\nI8\nS'size'\nI9\n"
      "S'frames'\n((S'filename'\nS'm.py'\nS'line'\nI1\nS'name'\nS'\xff'\ndldlld.";
  const MemorySnapshot unquoted = Read(pickle);
  EXPECT_NO_THROW((void)ToJson(unquoted, "snapshot.pickle").dump());
}

// Of many events each interval keeps its fullest moment.
TEST(MemorySnapshotTest, KeepsTheFullestMoments) {
  std::string events;
  for (int i = 0; i < 9000; ++i) {
    const int size = i == 4321 ? 1 << 20 : 512;
    events += fmt::format(R"({}{{"action": "alloc", "addr": {}, "size": {}}},)"
                          R"({{"action": "free_requested", "addr": {}, "size": {}}},)"
                          R"({{"action": "free_completed", "addr": {}, "size": {}}})",
                          i == 0 ? "" : ",", i, size, i, size, i, size);
  }
  const MemorySnapshot snapshot = Read(EventsAsJson(events));
  EXPECT_EQ(snapshot.events, 27'000u);
  EXPECT_LE(snapshot.moments.size(), kMostMoments);
  EXPECT_GE(snapshot.moments.size(), kMostMoments / 2);
  EXPECT_EQ(snapshot.peak.event, 3u * 4321 + 1);
  int high = 0;
  for (const SnapshotMoment& moment : snapshot.moments) {
    high += moment.allocated == Bytes(1 << 20);
    EXPECT_GE(moment.allocated, Bytes(512));
  }
  EXPECT_EQ(high, 1);
}

TEST(MemorySnapshotTest, SaysWhatIsWrong) {
  EXPECT_THAT(MessageOf("GIF89a"), HasSubstr("neither a pickle, nor JSON"));
  EXPECT_THAT(MessageOf(""), HasSubstr("neither a pickle, nor JSON"));
  EXPECT_THAT(MessageOf("<html></html>"), HasSubstr("a page without a snapshot"));
  EXPECT_THAT(MessageOf("[1, 2]"), HasSubstr("expected a dictionary with \"segments\""));
  EXPECT_THAT(MessageOf(R"({"segments": [], "device_traces": []})"), HasSubstr("no device"));
  EXPECT_THAT(MessageOf(R"({"segments": [)"), HasSubstr("this is no JSON"));
  EXPECT_THAT(MessageOf(R"({"segments": [{"device": 0}], "device_traces": []})"),
              HasSubstr("no number \"total_size\""));
  EXPECT_THAT(MessageOf(EventsAsJson(R"({"action": "alloc", "addr": 1, "size": -1})")),
              HasSubstr("expected 0 to 1e15 bytes"));
  EXPECT_THAT(MessageOf(EventsAsJson(""), 3),
              HasSubstr("there is no device 3; the snapshot has 0"));
  EXPECT_THAT(MessageOf("\x80\x09N."), HasSubstr("protocol 9; expected at most 5"));
  EXPECT_THAT(MessageOf("\x80\x04"), HasSubstr("byte 2 of the pickle: it is cut off"));
  EXPECT_THAT(MessageOf("\x80\x04}}u."), HasSubstr("a mark is missing"));
  EXPECT_THAT(MessageOf("\x80\x04(K\x01u."), HasSubstr("a value is missing"));
  EXPECT_THAT(MessageOf("\x80\x04}(K\x01u."), HasSubstr("a key without a value"));
  EXPECT_THAT(MessageOf("\x80\x04h\x07."), HasSubstr("the memo does not have"));
  EXPECT_THAT(MessageOf("\x80\x04\xff."), HasSubstr("the unknown opcode 0xff"));
  // What would run a command is not run: it is refused before anything is called.
  EXPECT_THAT(MessageOf("cos\nsystem\n(S'echo'\ntR."), HasSubstr("neither a pickle"));
  EXPECT_THAT(MessageOf("\x80\x02"
                        "cos\nsystem\n(U\x02lstR."),
              HasSubstr("an object of a Python class"));
}

// A list may contain itself.
TEST(MemorySnapshotTest, WalksNoFurtherThanKeysLead) {
  using namespace std::string_literals;
  const std::string loop = "\x80\x02]q\x00h\x00"s + "a.";
  const PlainData data = ReadPickle(loop, "loop.pickle");
  ASSERT_EQ(data.Items(data.root()).size(), 1u);
  EXPECT_EQ(data.Items(data.root())[0], data.root());
  EXPECT_THAT(MessageOf(loop), HasSubstr("expected a dictionary"));
}

TEST(MemorySnapshotTest, NumbersAreAsPythonWroteThem) {
  const auto number = [](const std::string& pickle) {
    const PlainData data = ReadPickle(pickle, "number.pickle");
    return data.Number(data.root()).value();
  };
  using namespace std::string_literals;
  EXPECT_EQ(number("I-7\n."), -7);
  EXPECT_EQ(number("L140737488355328L\n."), 140737488355328.0);
  EXPECT_EQ(number("K\xff."), 255);
  EXPECT_EQ(number("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(number("\x8a\x02\x00\xff."s), -256);
  EXPECT_EQ(number("\x8a\x00."s), 0);
  EXPECT_EQ(number("G\xc0\x04\x00\x00\x00\x00\x00\x00."s), -2.5);
  EXPECT_EQ(number("F1.5\n."), 1.5);
  EXPECT_EQ(number("\x88."), 1);
}

}  // namespace memory_snapshot_test
}  // namespace rehearse
