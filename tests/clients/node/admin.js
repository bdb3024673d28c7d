// Admin calls.
"use strict";

const { ConfigResourceTypes } = require("kafkajs");
const { code, kafka, until, using } = require("./client");
const { consume } = require("./groups");

const ALREADY_EXISTS = 36;

// Return a verb that gets its own connected admin client.
function withAdmin(verb) {
  return (bootstrap, given, report) => using(kafka(bootstrap).admin(), (admin) => verb(admin, given, report, bootstrap));
}

async function partitions(admin, topic) {
  return (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length;
}

async function topics(admin, given, report) {
  const wanted = { topics: [{ topic: given.topic, numPartitions: given.partitions, replicationFactor: 1 }] };
  const listed = async () => (await admin.listTopics()).includes(given.topic);
  const remove = () => code(() => admin.deleteTopics({ topics: [given.topic] }));
  report({ created: (await admin.createTopics(wanted)) ? 0 : ALREADY_EXISTS });
  // The library returns false instead of this error.
  report({ "created again": (await admin.createTopics(wanted)) ? 0 : ALREADY_EXISTS });
  report({ listed: await until(true, listed) });
  report({ partitions: await partitions(admin, given.topic) });
  report({ deleted: await remove() });
  report({ listed: await until(false, listed) });
  report({ "deleted again": await remove() });
}

async function create_partitions(admin, given, report) {
  const wanted = { topicPartitions: [{ topic: given.topic, count: given.partitions }] };
  report({ error: await code(() => admin.createPartitions(wanted)) });
  report({ partitions: await until(given.partitions, () => partitions(admin, given.topic)) });
  report({ error: await code(() => admin.createPartitions(wanted)) });
}

async function configs(admin, type, name, ...configNames) {
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type, name, configNames }] });
  return Object.fromEntries(resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue]));
}

async function topic_configs(admin, given, report) {
  report(await configs(admin, ConfigResourceTypes.TOPIC, given.topic, "retention.ms", "cleanup.policy"));
}

async function broker_configs(admin, given, report) {
  const { brokers } = await admin.describeCluster();
  report(await configs(admin, ConfigResourceTypes.BROKER, String(brokers[0].nodeId), "message.max.bytes"));
}

async function alter_configs(admin, given, report) {
  const configEntries = [{ name: "retention.ms", value: "5000" }];
  await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: given.topic, configEntries }] });
  const fetch = async () => (await configs(admin, ConfigResourceTypes.TOPIC, given.topic, "retention.ms"))["retention.ms"];
  report({ "retention.ms": await until("5000", fetch) });
}

// The library does not return the low watermark, so fetch it; and it needs the topic's metadata before it deletes.
async function delete_records(admin, given, report) {
  await admin.fetchTopicOffsets(given.topic);
  await admin.deleteTopicRecords({ topic: given.topic, partitions: [{ partition: 0, offset: String(given.count) }] });
  const [{ low }] = await admin.fetchTopicOffsets(given.topic);
  report({ low_watermark: Number(low) });
  report({ earliest: Number(low) });
}

async function list_offsets(admin, given, report) {
  const [{ low, high }] = await admin.fetchTopicOffsets(given.topic);
  const [{ offset }] = await admin.fetchTopicOffsetsByTimestamp(given.topic, given.count);
  report({ earliest: Number(low), latest: Number(high), by_timestamp: Number(offset) });
}

// Return a verb that runs `during` while the group has a member with committed offset 3, and `after` when it has left.
function live(during, after) {
  return withAdmin(async (admin, given, report, bootstrap) => {
    const rest = async (consumer) => {
      await consumer.commitOffsets([{ topic: given.topic, partition: 0, offset: "3" }]);
      await during(admin, given, report);
    };
    await consume(bootstrap, given, { groupId: given.group }, 1, () => {}, rest);
    await after(admin, given, report);
  });
}

async function nothing() {}

async function listGroups(admin, given, report) {
  const { groups } = await admin.listGroups();
  report({ listed: groups.some(({ groupId }) => groupId === given.group) });
}

async function describeGroup(admin, given, report) {
  const [{ state, members }] = (await admin.describeGroups([given.group])).groups;
  report({ state, members: members.length });
}

function remove(admin, given) {
  return code(() => admin.deleteGroups([given.group]));
}

async function deleteLive(admin, given, report) {
  report({ "with a member": await remove(admin, given) });
}

async function deleteEmpty(admin, given, report) {
  report({ empty: await remove(admin, given) });
  report({ deleted: await remove(admin, given) });
}

async function listGroupOffsets(admin, given, report) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId: given.group, topics: [given.topic] });
  report({ offset: Number(partitions[0].offset) });
}

async function alterGroupOffsets(admin, given, report) {
  await admin.setOffsets({ groupId: given.group, topic: given.topic, partitions: [{ partition: 0, offset: "7" }] });
  await listGroupOffsets(admin, given, report);
}

async function cluster(admin, given, report) {
  const { brokers, controller, clusterId } = await admin.describeCluster();
  report({ nodes: brokers.length, controller: brokers.some(({ nodeId }) => nodeId === controller), id: Boolean(clusterId) });
}

module.exports = {
  topics: withAdmin(topics),
  create_partitions: withAdmin(create_partitions),
  topic_configs: withAdmin(topic_configs),
  broker_configs: withAdmin(broker_configs),
  alter_configs: withAdmin(alter_configs),
  delete_records: withAdmin(delete_records),
  list_offsets: withAdmin(list_offsets),
  list_groups: live(listGroups, nothing),
  describe_group: live(describeGroup, describeGroup),
  delete_group: live(deleteLive, deleteEmpty),
  list_group_offsets: live(listGroupOffsets, nothing),
  alter_group_offsets: live(nothing, alterGroupOffsets),
  cluster: withAdmin(cluster),
};
